#include "measure.h"

#include <stdlib.h>

enum { WARM_UP = 2, FEWEST = 5, DATA = 1, ANSWER = 2 };
static const double ENOUGH = 2.0; /* seconds after which the fewest repetitions do */

const char *const PATTERN_NAMES[] = {"pairs", "inside", "fan-out", "fan-in", "alltoall"};

int most_sharers(Pattern pattern, const Nodes *nodes)
{
    int others = nodes->nodes - 1, per_node = nodes->per_node;
    switch (pattern) {
    case PAIRS:
        return others > 0 ? per_node : 0;
    case INSIDE:
        return per_node / 2;
    case FAN_OUT:
    case FAN_IN:
        return others < 2 ? 0 : others < per_node ? others : per_node; /* to one node it is pairs */
    default:
        return nodes->processes > 1 ? per_node : 0;
    }
}

int fewest_sharers(Pattern pattern, const Nodes *nodes)
{
    return pattern == ALLTOALL && nodes->nodes == 1 ? 2 : 1; /* a process alone on one node has no other to send to */
}

Role role_of(Pattern pattern, int sharers, const Nodes *nodes, int rank)
{
    Role idle = {IDLE, 0};
    if (pattern == ALLTOALL) {
        Role both = {BOTH, 0};
        for (int place = 0; place < nodes->processes; place++)
            if (nodes->rank_of[place] == rank && place % nodes->per_node < sharers)
                return both;
        return idle;
    }
    for (int k = 0; k < sharers; k++) {
        int here = nodes->rank_of[k];
        int there = pattern == PAIRS    ? nodes->rank_of[nodes->per_node + k]
                    : pattern == INSIDE ? nodes->rank_of[sharers + k]
                                        : nodes->rank_of[(k + 1) * nodes->per_node];
        if (rank == here || rank == there) {
            Role role = {(rank == here) == (pattern != FAN_IN) ? SENDS : RECEIVES, rank == here ? there : here};
            return role;
        }
    }
    return idle;
}

/* Messages between two barriers: enough that the processes' different times of leaving a barrier do not count. */
static int rounds_of(Role role, size_t bytes)
{
    return role.part == BOTH ? 1 : bytes < 16384 ? 32 : bytes < 262144 ? 4 : 1;
}

/* A message and an empty answer: its time needs no common clock. */
static void exchange(Role role, char *buffer, size_t bytes)
{
    if (role.part == SENDS) {
        MPI_Send(buffer, (int)bytes, MPI_BYTE, role.peer, DATA, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, role.peer, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, (int)bytes, MPI_BYTE, role.peer, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, role.peer, ANSWER, MPI_COMM_WORLD);
    }
}

/* Seconds of one repetition: of the slowest, the same for all members. */
static double repeat(Role role, MPI_Comm members, char *out, char *in, size_t bytes)
{
    int rounds = rounds_of(role, bytes);
    double slowest;
    MPI_Barrier(members);
    double start = MPI_Wtime();
    if (role.part == BOTH)
        MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, members);
    else
        for (int round = 0; round < rounds; round++)
            exchange(role, out, bytes);
    double seconds = role.part == RECEIVES ? 0.0 : (MPI_Wtime() - start) / rounds;
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, members);
    return slowest;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which a part of the sorted times lies, between two of them linearly. */
static double quantile(const double *sorted, int count, double part)
{
    double place = part * (count - 1);
    int low = (int)place, high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

Timing measure(Role role, MPI_Comm members, size_t bytes, int repetitions)
{
    int size, done = 0;
    MPI_Comm_size(members, &size);
    size_t room = role.part == BOTH ? bytes * (size_t)size : bytes;
    char *out = need(room), *in = role.part == BOTH ? need(room) : NULL;
    double *seconds = need((size_t)repetitions * sizeof *seconds), total = 0;
    for (int warm = 0; warm < WARM_UP; warm++)
        repeat(role, members, out, in, bytes);
    while (done < repetitions && (done < FEWEST || total < ENOUGH)) {
        seconds[done] = repeat(role, members, out, in, bytes);
        total += seconds[done++] * rounds_of(role, bytes);
    }
    qsort(seconds, (size_t)done, sizeof *seconds, ascending);
    Timing timing = {done, quantile(seconds, done, 0.25), quantile(seconds, done, 0.5),
                     quantile(seconds, done, 0.75)};
    free(seconds);
    free(in);
    free(out);
    return timing;
}
