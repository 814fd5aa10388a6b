/* Communicators of all kinds, windows, threads and processes that come and go. */
#include <pthread.h>
#include <sys/wait.h>

#include "kernels.h"

#define WORLD MPI_COMM_WORLD

static long ring_in(MPI_Comm comm, int rounds)
{
    int me, size, got = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    for (int round = 0; round < rounds; round++)
        MPI_Sendrecv(&round, 1, MPI_INT, (me + 1) % size, 0, &got, 1, MPI_INT, (me + size - 1) % size, 0, comm,
                     MPI_STATUS_IGNORE);
    return got;
}

/* Odd and even ranks, backwards; a ring in each, in its duplicate and in an upside-down world. */
long split(int rounds)
{
    MPI_Comm half, again, turned;
    MPI_Comm_split(WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(half, &again);
    MPI_Comm_split(WORLD, 0, -rank, &turned);
    long sum = ring_in(half, rounds) + ring_in(again, rounds) + ring_in(turned, rounds);
    MPI_Comm_free(&half);
    MPI_Comm_free(&again);
    MPI_Comm_free(&turned);
    return sum;
}

/* Communicators that come and go: handles are used again for others. A receive outlives its communicator. */
long churn(int rounds)
{
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        MPI_Comm comm;
        MPI_Request request;
        int me, got = 0;
        MPI_Comm_split(WORLD, 0, round % 2 ? -rank : rank, &comm);
        MPI_Comm_rank(comm, &me);
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &request);
        MPI_Send(&me, 1, MPI_INT, (me + 1) % ranks, 0, comm);
        MPI_Comm_free(&comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum += got;
    }
    return sum;
}

/* Two halves, each rank with its like in the other. */
long between(int rounds)
{
    MPI_Comm half, inter;
    int lower = rank < ranks / 2, me, got = 0;
    MPI_Comm_split(WORLD, lower, rank, &half);
    MPI_Comm_rank(half, &me);
    MPI_Intercomm_create(half, 0, WORLD, lower ? ranks / 2 : 0, 0, &inter);
    for (int round = 0; round < rounds; round++)
        MPI_Sendrecv(&round, 1, MPI_INT, me, 0, &got, 1, MPI_INT, me, 0, inter, MPI_STATUS_IGNORE);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    return got;
}

/* In a window of upside-down ranks: puts 8 bytes to the next, gets 16 of it, adds 8, swaps 8 and asks for 8. */
long one_sided(int rounds)
{
    MPI_Comm turned;
    MPI_Win window;
    double memory[8] = {0}, got[8] = {0}, one = 1, old;
    int me;
    MPI_Comm_split(WORLD, 0, -rank, &turned);
    MPI_Comm_rank(turned, &me);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, turned, &window);
    int next = (me + 1) % ranks;
    for (int round = 0; round < rounds; round++) {
        MPI_Win_fence(0, window);
        MPI_Put(&one, 1, MPI_DOUBLE, next, 0, 1, MPI_DOUBLE, window);
        MPI_Win_fence(0, window);
        MPI_Get(got, 2, MPI_DOUBLE, next, 0, 2, MPI_DOUBLE, window);
        MPI_Win_fence(0, window);
        MPI_Accumulate(&one, 1, MPI_DOUBLE, next, 1, 1, MPI_DOUBLE, MPI_SUM, window);
        MPI_Win_fence(0, window);
        MPI_Fetch_and_op(&one, &old, MPI_DOUBLE, next, 2, MPI_SUM, window);
        MPI_Win_fence(0, window);
        MPI_Fetch_and_op(NULL, &old, MPI_DOUBLE, next, 2, MPI_NO_OP, window);
        MPI_Win_fence(0, window);
        MPI_Put(&one, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, 1, MPI_DOUBLE, window);
    }
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&turned);
    return (long)old;
}

static int rounds_of_threads;

static void *play(void *tag_of)
{
    int tag = (int)(long)tag_of;
    double ball = 0;
    for (int round = 0; round < rounds_of_threads; round++) {
        if (rank == 0)
            MPI_Send(&ball, 1, MPI_DOUBLE, 1, tag, WORLD);
        if (round % 2) {
            MPI_Request request;
            MPI_Irecv(&ball, 1, MPI_DOUBLE, MPI_ANY_SOURCE, tag, WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&ball, 1, MPI_DOUBLE, 1 - rank, tag, WORLD, MPI_STATUS_IGNORE);
        }
        if (rank == 1)
            MPI_Send(&ball, 1, MPI_DOUBLE, 0, tag, WORLD);
    }
    return NULL;
}

/* Four threads of ranks 0 and 1 at once. */
long threads(int rounds)
{
    pthread_t thread[4];
    rounds_of_threads = rounds;
    for (long at = 0; at < 4 && rank < 2; at++)
        pthread_create(&thread[at], NULL, play, (void *)at);
    for (int at = 0; at < 4 && rank < 2; at++)
        pthread_join(thread[at], NULL);
    return rounds;
}

/* Two more processes, to which rank 0 sends; then a ring of those that were there before. */
long spawn(int rounds)
{
    MPI_Comm children;
    char file[4096] = "";
    char *words[] = {"spawned", "1", NULL};
    if (readlink("/proc/self/exe", file, sizeof file - 1) < 0)
        return -1;
    MPI_Comm_spawn(file, words, 2, MPI_INFO_NULL, 0, WORLD, &children, MPI_ERRCODES_IGNORE);
    for (int child = 0; child < 2 && rank == 0; child++)
        MPI_Send(&rounds, 1, MPI_INT, child, 0, children);
    MPI_Comm_disconnect(&children);
    return ring(rounds);
}

long spawned(int rounds)
{
    MPI_Comm parent;
    int got;
    MPI_Comm_get_parent(&parent);
    MPI_Recv(&got, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&parent);
    return ring(rounds);
}

/* Rank 0 starts another process by fork, which ends on its own. */
long forking(int rounds)
{
    long sum = ring(rounds);
    int status = 0;
    if (rank == 0) {
        pid_t child = fork();
        if (child == 0)
            exit(7);
        waitpid(child, &status, 0);
    }
    return sum + ring(rounds) + WEXITSTATUS(status);
}

/* The last rank ends in the middle of it. */
long dying(int rounds)
{
    long sum = ring(rounds);
    usleep(300000);
    if (rank == ranks - 1)
        abort();
    MPI_Barrier(WORLD);
    return sum;
}
