/* What is timed: messages of several pairs at once, and MPI_Alltoall. */
#ifndef TOPOLANE_MEASURE_H
#define TOPOLANE_MEASURE_H

#include <mpi.h>

#include "nodes.h"

typedef enum {
    PAIRS,   /* k processes of the first node, each to one of the second */
    INSIDE,  /* k processes of the first node, each to another of it */
    FAN_OUT, /* k processes of the first node, each to a node of its own */
    FAN_IN,  /* k nodes, one process each, to k processes of the first node */
    ALLTOALL /* k processes of every node, all to all */
} Pattern;

extern const char *const PATTERN_NAMES[];

/* Largest k that the nodes allow; 0: the pattern cannot be measured. */
int most_sharers(Pattern pattern, const Nodes *nodes);
int fewest_sharers(Pattern pattern, const Nodes *nodes);

/* What one process does in a pattern. */
typedef struct {
    enum { IDLE, SENDS, RECEIVES, BOTH } part;
    int peer; /* rank in MPI_COMM_WORLD */
} Role;

Role role_of(Pattern pattern, int sharers, const Nodes *nodes, int rank);

/* Seconds of one message (or one MPI_Alltoall), the slowest process counted, over the repetitions. */
typedef struct {
    int repetitions;
    double low, median, high; /* quartiles */
} Timing;

/* Collective over `members`, the processes that are not idle. */
Timing measure(Role role, MPI_Comm members, size_t bytes, int repetitions);

#endif
