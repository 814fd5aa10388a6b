/* An error handler of the program leaves MPI by longjmp (or, compiled as C++, by an exception): the calls after it.
 *
 *     left_by_longjmp ROUNDS     prints, of rank 0, how deep MPI calls an operation before and after
 */
#include <mpi.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static jmp_buf before;
static int heard, rank, wrong;
static uintptr_t top, deepest;

static void hear(MPI_Comm *comm, int *code, ...)
{
    heard++;
    (void)comm;
#ifdef __cplusplus
    throw *code;
#else
    longjmp(before, *code);
#endif
}

static void add(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    deepest = here < deepest ? here : deepest;
    for (int at = 0; at < *count; at++)
        ((int *)in_out)[at] += ((int *)in)[at];
    (void)type;
}

/* What is received is longer than the room for it. */
__attribute__((noinline)) static void fail(MPI_Comm comm)
{
    static int out[2] = {1, 2}, in;
    MPI_Request sent;
    MPI_Isend(out, 2, MPI_INT, rank, 5, comm, &sent);
    MPI_Request_free(&sent);
    MPI_Recv(&in, 1, MPI_INT, rank, 5, comm, MPI_STATUS_IGNORE);
    wrong++; /* not reached */
}

static void leave(MPI_Comm comm)
{
#ifdef __cplusplus
    try {
        fail(comm);
    } catch (int) {
    }
#else
    if (setjmp(before) == 0)
        fail(comm);
#endif
}

/* As deep as the failing call was, or deeper, without writing where it was. */
__attribute__((noinline)) static void sum(MPI_Comm comm)
{
    volatile char unwritten[4096];
    int ranks, all = 0, own = rank + 1;
    unwritten[0] = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, comm);
    wrong += all != ranks * (ranks + 1) / 2;
}

static void depth(MPI_Op op)
{
    int one = 1, all;
    deepest = top;
    for (int time = 0; time < 2; time++)    /* the first call after an error may find out about it */
        deepest = top, MPI_Scan(&one, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
    if (rank == 1)
        printf("scan %zu\n", (size_t)(top - deepest));
}

int main(int count, char **arguments)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Op op;
    top = (uintptr_t)__builtin_frame_address(0);
    alarm(20);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Op_create(add, 1, &op);
    depth(op);
    for (int round = 0; round < atoi(arguments[1]); round++) {
        if (rank == 0)
            leave(comm);
        sum(comm);
    }
    depth(op);
    wrong += heard != (rank == 0 ? atoi(arguments[1]) : 0);
    MPI_Op_free(&op);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return wrong != 0;
}
