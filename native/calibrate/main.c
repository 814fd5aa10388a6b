/* Times messages and MPI_Alltoall between and inside nodes; prints a JSON line for each.
 *
 *     calibrate REPETITIONS LARGEST ALLTOALL...     (bytes)
 *
 * Ranks may be placed in any order, the same number on every node. MPI-2 calls only.
 */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* usleep */
#endif
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "measure.h"

enum { DONE = 3, NAP = 200 /* microseconds */ };

typedef struct {
    int repetitions;
    size_t largest;
    int alltoalls;
    char **alltoall; /* sizes, as written */
} Plan;

/* Every number of sharers up to 16, beyond that steps of an eighth, and always the most. */
static int next_sharers(int sharers, int most)
{
    int next = sharers + (sharers < 16 ? 1 : sharers / 8);
    return sharers == most ? most + 1 : next < most ? next : most;
}

/* 0, 1, 4, 16, ... and always the largest. */
static size_t next_bytes(size_t bytes, size_t largest)
{
    size_t next = bytes ? 4 * bytes : 1;
    return bytes == largest ? largest + 1 : next < largest ? next : largest;
}

static int sizes_of(Pattern pattern, const Plan *plan)
{
    int count = 0;
    if (pattern == ALLTOALL)
        return plan->alltoalls;
    for (size_t bytes = 0; bytes <= plan->largest; bytes = next_bytes(bytes, plan->largest))
        count++;
    return count;
}

static int steps_of(const Plan *plan, const Nodes *nodes)
{
    int steps = 0;
    for (Pattern pattern = PAIRS; pattern <= ALLTOALL; pattern++) {
        int most = most_sharers(pattern, nodes);
        for (int k = fewest_sharers(pattern, nodes); k <= most; k = next_sharers(k, most))
            steps += sizes_of(pattern, plan);
    }
    return steps;
}

static void print_hosts(const Nodes *nodes, int steps)
{
    printf("{\"calibrate\": 1, \"measurements\": %d, \"hosts\": [", steps);
    for (int rank = 0; rank < nodes->processes; rank++)
        printf("%s\"%s\"", rank ? ", " : "", nodes->hosts + (size_t)rank * MPI_MAX_PROCESSOR_NAME);
    printf("]}\n");
    fflush(stdout);
}

static void print_timing(Pattern pattern, int sharers, size_t bytes, Timing timing)
{
    printf("{\"pattern\": \"%s\", \"sharers\": %d, \"bytes\": %lu, \"seconds\": %.9g, \"low\": %.9g, "
           "\"high\": %.9g, \"repetitions\": %d}\n",
           PATTERN_NAMES[pattern], sharers, (unsigned long)bytes, timing.median, timing.low, timing.high,
           timing.repetitions);
    fflush(stdout);
}

/* An idle process sleeps, so that it takes neither a core nor memory bandwidth from the others. */
static void sleep_until_done(void)
{
    int there = 0;
    while (!there) {
        usleep(NAP);
        MPI_Iprobe(0, DONE, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* One pattern with one number of sharers, over all sizes. Rank 0 takes part in each. */
static void run(Pattern pattern, int sharers, const Plan *plan, const Nodes *nodes, int rank)
{
    MPI_Comm members;
    Role role = role_of(pattern, sharers, nodes, rank);
    MPI_Comm_split(MPI_COMM_WORLD, role.part == IDLE ? MPI_UNDEFINED : 0, rank, &members);
    if (role.part == IDLE) {
        sleep_until_done();
        return;
    }
    size_t bytes = 0;
    for (int size = 0; size < sizes_of(pattern, plan); size++) {
        if (pattern == ALLTOALL)
            bytes = (size_t)strtoul(plan->alltoall[size], NULL, 10);
        Timing timing = measure(role, members, bytes, plan->repetitions);
        if (rank == 0)
            print_timing(pattern, sharers, bytes, timing);
        bytes = next_bytes(bytes, plan->largest);
    }
    for (int other = 0; rank == 0 && other < nodes->processes; other++)
        if (role_of(pattern, sharers, nodes, other).part == IDLE)
            MPI_Send(NULL, 0, MPI_BYTE, other, DONE, MPI_COMM_WORLD);
    MPI_Comm_free(&members);
}

int main(int count, char **words)
{
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count < 3) {
        fprintf(stderr, "calibrate: needs REPETITIONS LARGEST [ALLTOALL...]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    Plan plan = {atoi(words[1]), (size_t)strtoul(words[2], NULL, 10), count - 3, words + 3};
    Nodes nodes = find_nodes();
    int steps = nodes.per_node > 0 ? steps_of(&plan, &nodes) : 0;
    if (rank == 0)
        print_hosts(&nodes, steps);
    for (Pattern pattern = PAIRS; steps > 0 && pattern <= ALLTOALL; pattern++) {
        int most = most_sharers(pattern, &nodes);
        for (int k = fewest_sharers(pattern, &nodes); k <= most; k = next_sharers(k, most))
            run(pattern, k, &plan, &nodes, rank);
    }
    if (rank == 0)
        printf("{\"end\": %d}\n", steps);
    free(nodes.rank_of);
    free(nodes.hosts);
    MPI_Finalize();
    return 0;
}
