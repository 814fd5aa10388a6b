/* An operation of the program needs 40 MiB of stack, which the program has asked the system for. */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK = 64 << 20, ROOM = 40 << 20, PAGE = 4096 };

static void add(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    volatile char room[ROOM];
    for (long at = 0; at < ROOM; at += PAGE)
        room[at] = 1;
    for (int at = 0; at < *count; at++)
        ((int *)in_out)[at] += ((int *)in)[at] * room[0];
    (void)type;
}

int main(int count, char **arguments)
{
    struct rlimit limit;
    int ranks, one = 1, sum = 0, wrong = 0;
    MPI_Op op;
    getrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur < STACK) {
        limit.rlim_cur = STACK;
        if (setrlimit(RLIMIT_STACK, &limit) != 0)
            return 3;
        execv("/proc/self/exe", arguments);
    }
    MPI_Init(&count, &arguments);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Op_create(add, 1, &op);
    for (int time = 0; time < 6; time++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
        wrong += sum != ranks;
    }
    MPI_Op_free(&op);
    MPI_Finalize();
    return wrong != 0;
}
