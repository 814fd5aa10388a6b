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
/* Of bytes, of each the same. */
int stage_gather(Levels *levels, const void *send, int bytes, void *receive, int at);
int stage_scatter(Levels *levels, const void *send, void *receive, int bytes, int at);
int stage_alltoall(Levels *levels, const void *send, void *receive, int bytes);

/* A gather of blocks of different sizes, of bytes: the representative may use the first ones while the others come. */
typedef struct {
    Levels *levels;
    int posted, done;        /* messages, and those waited for, in the order of their bytes */
    MPI_Request *requests;
    int64_t *begins;         /* where each begins in the site's part */
} Gathering;

/* `part`, memory that `release` frees, has the blocks of the site one after the other, this rank's own among them; all
 * ranks know all `sizes`. */
int gathering_begin(Gathering *gathering, Levels *levels, char *part, const int *sizes, int at);
/* At the representative: until the first `bytes` of the part are there. */
int gathering_wait(Gathering *gathering, int64_t bytes);
/* Waits for all, or after an error for nothing more. */
int gathering_end(Gathering *gathering, int code);

#endif
