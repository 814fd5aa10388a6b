/* Prints how deep on the stack MPI calls an operation of the program: in calls with six and with seven arguments. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static uintptr_t deepest;

static void add(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    deepest = here < deepest ? here : deepest;
    for (int at = 0; at < *count; at++)
        ((int *)in_out)[at] += ((int *)in)[at];
    (void)type;
}

int main(int count, char **arguments)
{
    enum { RANKS = 2 };
    uintptr_t top = (uintptr_t)__builtin_frame_address(0);
    int rank, wrong = 0, own, sum[RANKS] = {0}, values[RANKS] = {1, 1}, counts[RANKS] = {1, 1};
    MPI_Op op;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Op_create(add, 1, &op);
#define DEPTH(name, call, right)                                            \
    deepest = top;                                                          \
    for (int time = 0; time < 3; time++)                                    \
        call;                                                               \
    wrong += !(right);                                                      \
    if (rank == 0)                                                          \
        printf("%s %zu\n", name, (size_t)(top - deepest))
    DEPTH("allreduce", MPI_Allreduce(values, sum, 2, MPI_INT, op, MPI_COMM_WORLD), sum[1] == RANKS);
    DEPTH("reduce", MPI_Reduce(values, sum, 2, MPI_INT, op, 0, MPI_COMM_WORLD), rank || sum[1] == RANKS);
    DEPTH("reduce_scatter", MPI_Reduce_scatter(values, &own, counts, MPI_INT, op, MPI_COMM_WORLD), own == RANKS);
    DEPTH("scan", MPI_Scan(values, sum, 2, MPI_INT, op, MPI_COMM_WORLD), sum[1] == rank + 1);
    printf("wrong %d\n", wrong);
    MPI_Op_free(&op);
    return MPI_Finalize();
}
