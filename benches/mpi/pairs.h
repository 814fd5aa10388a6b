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
    int pairs;
} Pairs;

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

static int ascending(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

/* Prints medians over the pairs, in `unit` seconds a step: without, with, and what is more in a pair. */
static void print_pairs(Pairs of, double unit)
{
    double *values = calloc(3 * (size_t)of.pairs, sizeof *values);
    double *without = values, *with = values + of.pairs, *more = values + 2 * of.pairs;
    int rank;
    batch(of.seen, of.steps);
    batch(of.unseen, of.steps);
    for (int pair = 0; pair < of.pairs; pair++) {
        /* Which one is first alternates, too: what changes slowly cancels out. */
        if (pair % 2)
            without[pair] = batch(of.unseen, of.steps);
        with[pair] = batch(of.seen, of.steps);
        if (pair % 2 == 0)
            without[pair] = batch(of.unseen, of.steps);
        more[pair] = with[pair] - without[pair];
    }
    unit *= of.steps;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%.3f %.3f %.3f\n", median(without, of.pairs) / unit, median(with, of.pairs) / unit,
               median(more, of.pairs) / unit);
    free(values);
}

#endif
