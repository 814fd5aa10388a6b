/* Every collective of a kind `rounds` times; what the usual algorithm sends is written down in the test. */
#include "kernels.h"

#define WORLD MPI_COMM_WORLD
enum { MOST = 64 };

static int in[MOST * 8], out[MOST * 8], counts[MOST], displs[MOST];

static void prepare(void)
{
    for (int peer = 0; peer < ranks; peer++) {
        counts[peer] = peer;        /* nothing of rank 0 */
        displs[peer] = 4 * peer;
    }
    memset(in, 1, sizeof in);
}

/* Four bytes a rank, of root 1; of the v's as many integers as the rank's number. */
long blocking(int rounds)
{
    prepare();
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(WORLD);
        MPI_Bcast(in, 1, MPI_INT, 1, WORLD);
        MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, 1, WORLD);
        MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_INT, MPI_MAX, WORLD);
        MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, 1, WORLD);
        MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, 1, WORLD);
        MPI_Gatherv(in, rank, MPI_INT, out, counts, displs, MPI_INT, 1, WORLD);
        MPI_Scatterv(in, counts, displs, MPI_INT, out, rank, MPI_INT, 1, WORLD);
        MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, WORLD);
        MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, WORLD);
        MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, WORLD);
        MPI_Bcast(in, 0, MPI_INT, 1, WORLD);
    }
    return in[0];
}

long nonblocking(int rounds)
{
    prepare();
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[11];
        MPI_Ibarrier(WORLD, &requests[0]);
        MPI_Ibcast(in, 1, MPI_INT, 1, WORLD, &requests[1]);
        MPI_Ireduce(in, &out[0], 1, MPI_INT, MPI_SUM, 1, WORLD, &requests[2]);
        MPI_Iallreduce(in, &out[8], 1, MPI_INT, MPI_MAX, WORLD, &requests[3]);
        MPI_Igather(in, 1, MPI_INT, &out[16], 1, MPI_INT, 1, WORLD, &requests[4]);
        MPI_Iscatter(in, 1, MPI_INT, &out[32], 1, MPI_INT, 1, WORLD, &requests[5]);
        MPI_Igatherv(in, rank, MPI_INT, &out[48], counts, displs, MPI_INT, 1, WORLD, &requests[6]);
        MPI_Iscatterv(in, counts, displs, MPI_INT, &out[96], rank, MPI_INT, 1, WORLD, &requests[7]);
        MPI_Iallgather(in, 1, MPI_INT, &out[128], 1, MPI_INT, WORLD, &requests[8]);
        MPI_Ialltoall(in, 1, MPI_INT, &out[160], 1, MPI_INT, WORLD, &requests[9]);
        MPI_Iscan(in, &out[192], 1, MPI_INT, MPI_SUM, WORLD, &requests[10]);
        MPI_Waitall(11, requests, MPI_STATUSES_IGNORE);
    }
    return in[0];
}

long persistent_collectives(int rounds)
{
#if MPI_VERSION >= 4
    MPI_Request requests[2];
    MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(in, 1, MPI_INT, 1, WORLD, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < rounds; round++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
#endif
    return rounds;
}

/* The ring and a broadcast with counts of MPI_Count. */
long large_counts(int rounds)
{
    int got = 0;
#if MPI_VERSION >= 4
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[2];
        MPI_Irecv_c(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, WORLD, &requests[0]);
        MPI_Isend_c(&round, 1, MPI_INT, (rank + 1) % ranks, 0, WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Bcast_c(in, 1, MPI_INT, 1, WORLD);
    }
#endif
    return got + 0 * rounds;
}

/* On a line of ranks, and on a graph in which each speaks to rank 0 only. */
long neighbours(int rounds)
{
    MPI_Comm line, graph;
    int zero = 0, sources[MOST];
    for (int peer = 0; peer < ranks; peer++)
        sources[peer] = peer;
    MPI_Cart_create(WORLD, 1, &ranks, &zero, 0, &line);
    MPI_Dist_graph_create_adjacent(WORLD, rank ? 0 : ranks, sources, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < rounds; round++) {
        MPI_Neighbor_alltoall(in, 2, MPI_INT, out, 2, MPI_INT, line);
        MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, graph);
    }
    MPI_Comm_free(&line);
    MPI_Comm_free(&graph);
    return in[0];
}

/* Rank 0 asks rank 1 by a message; the answer is a broadcast. */
long answered_by_all(int rounds)
{
    int value = 0;
    for (int round = 0; round < rounds; round++) {
        if (rank == 0)
            MPI_Send(&round, 1, MPI_INT, 1, 0, WORLD);
        else
            MPI_Recv(&value, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
        MPI_Bcast(&value, 1, MPI_INT, 1, WORLD);
    }
    return value;
}
