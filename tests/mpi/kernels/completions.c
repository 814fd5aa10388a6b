/* Receives, and the ways in which they become complete. In each, rank 0 sends to all others and hears from each once. */
#include "kernels.h"

#define WORLD MPI_COMM_WORLD

static int wait_one(int way, int count, MPI_Request *requests)
{
    int flag = 0, index = 0, indices[16];
    MPI_Status status, statuses[16];
    switch (way) {
    case 0: for (int at = 0; at < count; at++) MPI_Wait(&requests[at], &status); return count;
    case 1: MPI_Waitall(count, requests, MPI_STATUSES_IGNORE); return count;
    case 2: MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE); return 1;
    case 3: MPI_Waitsome(count, requests, &index, indices, statuses); return index;
    case 4: MPI_Testall(count, requests, &flag, statuses); return flag ? count : 0;
    case 5: MPI_Testany(count, requests, &index, &flag, &status); return flag;
    case 6: MPI_Testsome(count, requests, &index, indices, MPI_STATUSES_IGNORE); return index;
    default:
        for (int at = 0; at < count; at++)
            while (!flag || requests[at] != MPI_REQUEST_NULL)
                MPI_Test(&requests[at], &flag, MPI_STATUS_IGNORE);
        return count;
    }
}

static long one_round(int way, int from_any)
{
    MPI_Request requests[16];
    int got[16], sum = 0;
    if (rank) {
        MPI_Recv(got, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, 0, 1, WORLD);
        return 0;
    }
    for (int peer = 1; peer < ranks; peer++)
        MPI_Irecv(&got[peer - 1], 1, MPI_INT, from_any ? MPI_ANY_SOURCE : peer, 1, WORLD, &requests[peer - 1]);
    for (int peer = 1; peer < ranks; peer++)
        MPI_Send(&peer, 1, MPI_INT, peer, 0, WORLD);
    for (int done = 0; done < ranks - 1;) {
        int more = wait_one(way, ranks - 1, requests);
        done += more > 0 ? more : 0;
        if (!more)
            usleep(100);
    }
    for (int peer = 1; peer < ranks; peer++)
        sum += got[peer - 1];
    return sum;
}

long completion(int rounds)
{
    long sum = 0;
    for (int round = 0; round < 8 * rounds; round++)
        sum += one_round(round % 8, 0);
    return sum;
}

long any_source(int rounds)
{
    long sum = 0;
    for (int round = 0; round < 8 * rounds; round++)
        sum += one_round(round % 8, 1);
    return sum;
}

/* Thousands of receives under way at once. */
long many(int rounds)
{
    MPI_Request *requests = malloc((size_t)rounds * sizeof *requests);
    int *got = calloc((size_t)rounds, sizeof *got), sum = 0;
    for (int round = 0; round < rounds && rank == 0; round++)
        MPI_Irecv(&got[round], 1, MPI_INT, round % 2 ? 1 : MPI_ANY_SOURCE, round, WORLD, &requests[round]);
    MPI_Barrier(WORLD);
    for (int round = 0; round < rounds && rank < 2; round++) {
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        else
            MPI_Recv(&got[0], 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
    }
    for (int round = rounds - 1; round >= 0 && rank == 1; round--)
        MPI_Send(&round, 1, MPI_INT, 0, round, WORLD);
    if (rank == 0)
        MPI_Waitall(rounds, requests, MPI_STATUSES_IGNORE);
    for (int round = 0; round < rounds; round++)
        sum += got[round];
    free(requests);
    free(got);
    return sum;
}

/* Rank 0 asks, rank 1 answers with 8 bytes that rank 0 probes for, each way in turn. */
long probes(int rounds)
{
    double got = 0, sum = 0;
    for (int round = 0; round < 4 * rounds && rank < 2; round++) {
        MPI_Message message;
        MPI_Request request;
        MPI_Status status;
        int flag = 0;
        if (rank) {
            MPI_Recv(&got, 1, MPI_DOUBLE, 0, 0, WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&got, 1, MPI_DOUBLE, 0, 1, WORLD);
            continue;
        }
        MPI_Send(&(double){round}, 1, MPI_DOUBLE, 1, 0, WORLD);
        switch (round % 4) {
        case 0:
            MPI_Probe(MPI_ANY_SOURCE, 1, WORLD, &status);
            MPI_Recv(&got, 1, MPI_DOUBLE, status.MPI_SOURCE, 1, WORLD, MPI_STATUS_IGNORE);
            break;
        case 1:
            while (!flag)
                MPI_Iprobe(1, 1, WORLD, &flag, MPI_STATUS_IGNORE);
            MPI_Recv(&got, 1, MPI_DOUBLE, 1, 1, WORLD, MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Mprobe(MPI_ANY_SOURCE, 1, WORLD, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(&got, 1, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
            break;
        default:
            while (!flag)
                MPI_Improbe(1, 1, WORLD, &flag, &message, MPI_STATUS_IGNORE);
            MPI_Imrecv(&got, 1, MPI_DOUBLE, &message, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        sum += got;
    }
    return (long)sum;
}

/* Receives that never complete; then a ring. */
long cancelled(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        MPI_Request request;
        int got;
        MPI_Send(&round, 1, MPI_INT, (rank + 1) % ranks, 0, WORLD);
        MPI_Recv(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(&got, 1, MPI_INT, round % 2 ? MPI_ANY_SOURCE : (rank + 1) % ranks, 7, WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return ring(rounds);
}

/* Ranks 0 and 1: the whole pingpong is set up once. */
long persistent(int rounds)
{
    MPI_Request requests[2];
    int ball = 0, got = 0;
    if (rank > 1)
        return 0;
    MPI_Send_init(&ball, 1, MPI_INT, 1 - rank, 0, WORLD, &requests[0]);
    MPI_Recv_init(&got, 1, MPI_INT, rank ? MPI_ANY_SOURCE : 1, 0, WORLD, &requests[1]);
    for (int round = 0; round < rounds; round++) {
        ball = round;
        if (round % 2) {
            MPI_Startall(2, requests);
        } else {
            MPI_Start(&requests[1]);
            MPI_Start(&requests[0]);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);    /* of what is not active: nothing happens */
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    return got;
}
