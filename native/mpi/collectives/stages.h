/* The stages inside a site: MPI's collectives on the site's private communicator, counted as modelled.
 * `at` is the index of the representative in the site. */
#ifndef TOPOLANE_MPI_STAGES_H
#define TOPOLANE_MPI_STAGES_H

#include "levels.h"

int stage_barrier(Levels *levels);
int stage_bcast(Levels *levels, void *buffer, int count, MPI_Datatype type, int at);
int stage_reduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int at);
int stage_ireduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int at,
                  MPI_Request *request);
/* Gather and scatter of equal numbers of bytes. */
int stage_gather(Levels *levels, const void *send, int bytes, void *receive, int at);
int stage_scatter(Levels *levels, const void *send, void *receive, int bytes, int at);
int stage_alltoall(Levels *levels, const void *send, void *receive, int bytes);

/* A gather of byte blocks of different sizes. The representative may use the first ones while others are
 * under way. */
typedef struct {
    Levels *levels;
    int posted, done;        /* number of messages, and how many of them were waited for, in the order of their bytes */
    MPI_Request *requests;
    int64_t *begins;         /* the start of each in the site's part */
} Gathering;

/* Starts the gather. `part`, memory that `release` frees, holds the blocks of the site one after the
 * other, including this rank's; all ranks know all `sizes`. */
int gathering_begin(Gathering *gathering, Levels *levels, char *part, const int *sizes, int at);
/* Waits until the first `bytes` of the part have arrived. For the representative. */
int gathering_wait(Gathering *gathering, int64_t bytes);
/* Waits for the rest; after an error (`code`), for nothing more. */
int gathering_end(Gathering *gathering, int code);

#endif
