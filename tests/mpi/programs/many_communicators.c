/* More communicators than MPICH has context ids, one after another, and many at once; a collective on each.
 *
 *     many_communicators IN_TURN AT_ONCE
 */
#include <mpi.h>
#include <stdlib.h>

static int used(MPI_Comm comm)
{
    int ranks, one = 1, sum = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum == ranks;
}

int main(int count, char **arguments)
{
    MPI_Comm comm;
    int good = 1;
    MPI_Init(&count, &arguments);
    for (int i = 0; i < atoi(arguments[1]); i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        good &= used(comm);
        MPI_Comm_free(&comm);
    }
    int many = atoi(arguments[2]);
    MPI_Comm *all = malloc((size_t)many * sizeof *all);
    for (int i = 0; i < many; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
        good &= used(all[i]);
    }
    for (int i = 0; i < many; i++)
        MPI_Comm_free(&all[i]);
    MPI_Finalize();
    return !good;
}
