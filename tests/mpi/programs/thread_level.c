/* The thread level that MPI gives and later says: 1 in the exit code if they differ. Collectives make two levels begin. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : MPI_THREAD_SINGLE, given, said, sum = 0, one = 1;
    MPI_Init_thread(&argc, &argv, wanted, &given);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Query_thread(&said);
    MPI_Finalize();
    return said != given;
}
