/* Measures in one run what watching adds: the same steps with MPI's names, which a library may watch, and with PMPI's,
 * which no library can watch, in batches that alternate within milliseconds. Whole runs show less: if a host moves its
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

/* A limit, because two ranks that wait for each other take very long if other processes use the cores. */
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

/* Sorts by the total time of a pair: in the short ones, no other process disturbed either half. */
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

/* The median over pairs of `without` x time without plus `with` x time with: one of the two times, or the difference. */
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

/* Prints medians over the shortest quarter of the pairs, in `unit` seconds per step: without, with, and the increase
 * within a pair. */
static void print_pairs(Pairs of, double unit)
{
    Pair *pairs = calloc((size_t)of.pairs, sizeof *pairs);
    int rank;
    batch(of.seen, of.steps);
    batch(of.unseen, of.steps);
    double until = PMPI_Wtime() + MOST_SECONDS;
    int done = 0, more = 1;
    for (int at = 0; more; at++) {
        /* Alternate which half is first, so that slow changes cancel out. */
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
