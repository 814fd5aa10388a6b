/* Prints the rank and the node of every process. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    int rank;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%d %s\n", rank, getenv("SLURMD_NODENAME"));
    MPI_Finalize();
    return 0;
}
