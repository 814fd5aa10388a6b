/* Times watched and unwatched calls in nanoseconds per call (pairs.h). One rank sends to itself; two send to and fro. */
#include "pairs.h"

static int rank;
static char given[8], got[8];

/* Two ranks: a send and a receive each. */
#define BALL(name, MPI)                                                                   \
    static void name(void)                                                                \
    {                                                                                     \
        if (rank == 0)                                                                    \
            MPI##_Send(given, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);                         \
        MPI##_Recv(got, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);     \
        if (rank == 1)                                                                    \
            MPI##_Send(given, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);                         \
    }

/* One rank: a receive, a send and a wait for both, without waiting for another rank. */
#define TO_ITSELF(name, MPI)                                                              \
    static void name(void)                                                                \
    {                                                                                     \
        MPI_Request requests[2];                                                          \
        MPI##_Irecv(got, 8, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[0]);             \
        MPI##_Isend(given, 8, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &requests[1]);           \
        MPI##_Waitall(2, requests, MPI_STATUSES_IGNORE);                                  \
    }

BALL(ball, MPI)
BALL(ball_unseen, PMPI)
TO_ITSELF(to_itself, MPI)
TO_ITSELF(to_itself_unseen, PMPI)

int main(int count, char **words)
{
    int ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 2)
        print_pairs((Pairs){ball, ball_unseen, 500, 1000}, 2e-9);
    else
        print_pairs((Pairs){to_itself, to_itself_unseen, 500, 1000}, 3e-9);
    MPI_Finalize();
    return 0;
}
