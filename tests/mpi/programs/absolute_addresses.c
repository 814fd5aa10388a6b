/* Broadcasts two arrays by their addresses: a type at MPI_BOTTOM. */
#include <mpi.h>
#include <stdio.h>

enum { LENGTH = 4 };

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    int rank, first[LENGTH] = {0}, second[LENGTH] = {0}, lengths[] = {LENGTH, LENGTH}, wrong = 0, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < LENGTH && rank == 0; i++) {
        first[i] = i + 1;
        second[i] = 10 * i + 1;
    }
    MPI_Aint at[2];
    MPI_Datatype both;
    MPI_Get_address(first, &at[0]);
    MPI_Get_address(second, &at[1]);
    MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &both);
    MPI_Type_commit(&both);
    for (int round = 0; round < 3; round++)
        MPI_Bcast(MPI_BOTTOM, 1, both, 0, MPI_COMM_WORLD);
    for (int i = 0; i < LENGTH; i++)
        wrong += first[i] != i + 1 || second[i] != 10 * i + 1;
    MPI_Type_free(&both);
    PMPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", all);
    MPI_Finalize();
    return 0;
}
