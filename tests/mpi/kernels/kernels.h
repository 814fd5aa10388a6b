/* Small MPI programs of which every message is known beforehand: `kernels NAME ROUNDS`. */
#ifndef KERNELS_H
#define KERNELS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int rank, ranks;

/* Each answers with a number that all of its messages go into. */
typedef long Kernel(int rounds);

Kernel ring, pingpong, slow_ring, halo, conjugate_gradient, wavefront, self, modes, completion, any_source, many,
    probes, cancelled, persistent, split, churn, between, one_sided, threads, spawn, spawned, forking, dying, blocking,
    nonblocking, persistent_collectives, large_counts, neighbours,
    answered_by_all;

#endif
