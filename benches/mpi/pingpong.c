/* Time of calls: prints nanoseconds a call, in each the least of many batches, which no other process disturbed. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { BATCHES = 400, CALLS = 500 };

static int rank;
static char given[8], got[8];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* Two ranks: a send and a receive each. */
static void ball(void)
{
    if (rank == 0)
        MPI_Send(given, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(got, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(given, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* To itself: a receive, a send and a wait for both, with no other rank to wait for. */
static void to_itself(void)
{
    MPI_Request requests[2];
    MPI_Irecv(got, 8, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(given, 8, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static double least(void (*one)(void), int calls)
{
    double best = 1e18;
    for (int batch = 0; batch < BATCHES; batch++) {
        double began = now();
        for (int call = 0; call < CALLS; call++)
            one();
        double spent = (now() - began) / CALLS / calls;
        best = spent < best ? spent : best;
    }
    return best;
}

int main(int count, char **words)
{
    int ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double time = ranks == 2 ? least(ball, 2) : least(to_itself, 3);
    if (rank == 0)
        printf("%.1f\n", time);
    MPI_Finalize();
    return 0;
}
