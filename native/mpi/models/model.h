/* The messages inside a collective, according to the usual algorithm for that call
 * (docs/reference/mpi-counts.md).
 *
 * The algorithms, and the sizes at which one replaces another, are MPICH's, as in R. Thakur, R.
 * Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
 * 2005. Each function counts what this rank sends and receives. `bytes` are one rank's share unless said
 * otherwise. */
#ifndef TOPOLANE_MODEL_H
#define TOPOLANE_MODEL_H

#include "requests.h"

typedef struct {
    const Communicator *of;
    Persistent *kept;    /* the persistent collective that stores the counts for its starts; NULL: count now */
} Model;

void model_send(const Model *model, int rank, uint64_t bytes);
void model_receive(const Model *model, int rank);
void model_exchange(const Model *model, int rank, uint64_t bytes);

void model_barrier(const Model *model);
void model_bcast(const Model *model, int root, uint64_t bytes);
void model_reduce(const Model *model, int root, uint64_t bytes);
void model_allreduce(const Model *model, uint64_t bytes);
void model_reduce_scatter(const Model *model, uint64_t total);
void model_scan(const Model *model, uint64_t bytes);
void model_gather(const Model *model, int root, uint64_t bytes);
void model_scatter(const Model *model, int root, uint64_t bytes);
void model_allgather(const Model *model, uint64_t bytes);
void model_alltoall(const Model *model, uint64_t bytes);

/* Returns the bytes of a rank's part, for calls in which they vary. */
typedef uint64_t Part(const void *parts, int rank);
void model_gatherv(const Model *model, int root, uint64_t bytes, Part *part, const void *parts);
void model_scatterv(const Model *model, int root, uint64_t bytes, Part *part, const void *parts);
void model_allgatherv(const Model *model, Part *part, const void *parts);
void model_alltoallv(const Model *model, Part *out, const void *outs, Part *in, const void *ins);
/* Here `at` of a part is the index of a neighbour. */
void model_neighbours(const Model *model, MPI_Comm comm, Part *out, const void *outs);

#endif
