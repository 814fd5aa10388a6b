/* What watching adds, found in one run: the same steps through MPI's names, which a library may watch, and through
 * PMPI's, which none can, in batches that take turns within milliseconds. Whole runs say less: where a host moves its
 * virtual cores, a message between two of them takes three times as long in one run as in the next. */
#ifndef PAIRS_H
#define PAIRS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef void Step(void);

typedef struct {
    Step *seen, *unseen;
    int steps;          /* in a batch */
    int pairs;          /* at most */
} Pairs;

/* Where other processes want the cores, two ranks that wait for each other take for ever. */
static const double MOST_SECONDS = 20;

/* Seconds of a batch, until all ranks are through. */
static double batch(Step *step, int steps)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    double began = PMPI_Wtime();
    for (int at = 0; at < steps; at++)
        step();
    PMPI_Barrier(MPI_COMM_WORLD);
    return PMPI_Wtime() - began;
}

typedef struct {
    double without, with;
} Pair;

/* By the pair's time in all: short ones are those that no other process disturbed, whichever half it would have hit. */
static int undisturbed_first(const void *left, const void *right)
{
    const Pair *one = left, *other = right;
    double difference = one->without + one->with - other->without - other->with;
    return (difference > 0) - (difference < 0);
}

static int ascending(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

/* Of what a pair says: its time without, with, and the difference. */
static double median(const Pair *pairs, int count, int without, int with)
{
    double *values = calloc((size_t)count, sizeof *values);
    for (int at = 0; at < count; at++)
        values[at] = without * pairs[at].without + with * pairs[at].with;
    qsort(values, (size_t)count, sizeof *values, ascending);
    double middle = values[count / 2];
    free(values);
    return middle;
}

/* Prints medians over the quarter of the pairs that took least, in `unit` seconds a step: without, with, and what is
 * more in a pair. */
static void print_pairs(Pairs of, double unit)
{
    Pair *pairs = calloc((size_t)of.pairs, sizeof *pairs);
    int rank;
    batch(of.seen, of.steps);
    batch(of.unseen, of.steps);
    double until = PMPI_Wtime() + MOST_SECONDS;
    int done = 0, more = 1;
    for (int at = 0; more; at++) {
        /* Which one is first alternates, too: what changes slowly cancels out. */
        if (at % 2)
            pairs[at].without = batch(of.unseen, of.steps);
        pairs[at].with = batch(of.seen, of.steps);
        if (at % 2 == 0)
            pairs[at].without = batch(of.unseen, of.steps);
        done = at + 1;
        more = done < of.pairs && PMPI_Wtime() < until;
        PMPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    int kept = (done + 3) / 4;
    qsort(pairs, (size_t)done, sizeof *pairs, undisturbed_first);
    unit *= of.steps;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%.3f %.3f %.3f\n", median(pairs, kept, 1, 0) / unit, median(pairs, kept, 0, 1) / unit,
               median(pairs, kept, -1, 1) / unit);
    free(pairs);
}

#endif
