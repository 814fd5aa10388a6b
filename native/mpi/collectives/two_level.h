/* Collectives in two levels: inside every site, and between one representative of each.
 *
 * Each function returns whether it did the call. If so, `*result` is MPI's return code, the communicator's
 * error handler was called for an error, and the caller must not call PMPI. It returns the same on all
 * ranks of the communicator, because it decides by values that MPI requires to be equal there
 * (docs/explanation/sites-collectives.md). If it returns false, nothing was sent except, now and then, the
 * messages to agree on a site map.
 *
 * Counts may be large: the calls of MPI 4 whose names end in _c use the same functions. */
#ifndef TOPOLANE_MPI_TWO_LEVEL_H
#define TOPOLANE_MPI_TWO_LEVEL_H

#include "../topolane_mpi.h"

/* The counts of calls whose names end in v: either the first two fields or, for _c, the last two. */
typedef struct {
    const int *counts, *displs;
    const MPI_Count *large_counts;
    const MPI_Aint *large_displs;
} Blocks;

/* Reads the environment and agrees on it over MPI_COMM_WORLD. Call this once on all ranks, right after
 * PMPI_Init or PMPI_Init_thread. Before, or without it, every call stays flat. */
void two_level_start(void);


bool two_level_barrier(MPI_Comm comm, int *result);
bool two_level_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, int *result);
bool two_level_reduce(const void *send, void *receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm, int *result);
bool two_level_allreduce(const void *send, void *receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, int *result);
bool two_level_gather(const void *send, MPI_Count count, MPI_Datatype type, void *receive,
                      MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm, int *result);
bool two_level_gatherv(const void *send, MPI_Count count, MPI_Datatype type, void *receive, Blocks receive_blocks,
                       MPI_Datatype receive_type, int root, MPI_Comm comm, int *result);
bool two_level_scatter(const void *send, MPI_Count count, MPI_Datatype type, void *receive,
                       MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm, int *result);
bool two_level_scatterv(const void *send, Blocks blocks, MPI_Datatype type, void *receive, MPI_Count receive_count,
                        MPI_Datatype receive_type, int root, MPI_Comm comm, int *result);
bool two_level_allgather(const void *send, MPI_Count count, MPI_Datatype type, void *receive,
                         MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, int *result);
bool two_level_allgatherv(const void *send, MPI_Count count, MPI_Datatype type, void *receive,
                          Blocks receive_blocks, MPI_Datatype receive_type, MPI_Comm comm, int *result);
bool two_level_alltoall(const void *send, MPI_Count count, MPI_Datatype type, void *receive,
                        MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm, int *result);

#endif
