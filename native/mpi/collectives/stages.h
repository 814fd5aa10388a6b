/* The stages inside a site: MPI's own collectives on the site's private communicator, counted as modelled.
 * `at` is the representative's place in the site. */
#ifndef TOPOLANE_MPI_STAGES_H
#define TOPOLANE_MPI_STAGES_H

#include "levels.h"

int stage_barrier(Levels *levels);
int stage_bcast(Levels *levels, void *buffer, int count, MPI_Datatype type, int at);
int stage_reduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int at);
int stage_ireduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int at,
                  MPI_Request *request);
/* Of bytes. With a block each of the same size, or with sizes and offsets that the representative knows. */
int stage_gather(Levels *levels, const void *send, int bytes, void *receive, int at);
int stage_gatherv(Levels *levels, const void *send, int bytes, void *receive, const int *sizes, const int *offsets,
                  int at);
int stage_scatter(Levels *levels, const void *send, void *receive, int bytes, int at);
int stage_alltoall(Levels *levels, const void *send, void *receive, int bytes);

#endif
