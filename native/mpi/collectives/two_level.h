/* Collectives in two levels: inside every site, and between one representative of each.
 *
 * Each function answers whether it did the call; `*result` is then MPI's return code, the communicator's error
 * handler has been called where it is an error, and the caller must not call PMPI. It answers the same on all
 * ranks of the communicator: what decides is what MPI wants equal there
 * (docs/explanation/mpi-collectives.md). Where it answers no, nothing was sent but, now and then, what the ranks need to agree on a site map.
 *
 * Counts may be large: the calls of MPI 4 whose names end in _c go through the same functions.
 */
#ifndef TOPOLANE_MPI_TWO_LEVEL_H
#define TOPOLANE_MPI_TWO_LEVEL_H

#include "../topolane_mpi.h"

/* Of the calls whose names end in v: either the first two or, for _c, the last two. */
typedef struct {
    const int *counts, *displs;
    const MPI_Count *large_counts;
    const MPI_Aint *large_displs;
} Blocks;

/* Once, right after PMPI_Init and PMPI_Init_thread, on all ranks: reads the environment and agrees on it over
 * MPI_COMM_WORLD. Before it, and where it was never called, every call stays flat. */
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
