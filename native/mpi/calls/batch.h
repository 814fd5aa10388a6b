/* The requests that a call waits for, with what was known of each before MPI could free its handle. */
#ifndef TOPOLANE_BATCH_H
#define TOPOLANE_BATCH_H

#include "requests.h"

enum { FEW = 32 };

/* The requests passed to MPI, and what was known of each before MPI could free its handle. */
typedef struct {
    int count;
    MPI_Request *request;
    Value *value;
    MPI_Status *status;      /* the program's, or the library's own if one is needed; otherwise MPI_STATUSES_IGNORE */
    bool any;                /* whether any of the requests is known */
    Value few_values[FEW];
    MPI_Status few_statuses[FEW];
} Batch;

/* Call this before MPI. `one`: MPI writes a single status whatever the number of requests. */
void batch_open(Batch *batch, int count, MPI_Request *request, MPI_Status *status, bool one);
/* Records that request `at` is complete; its status has the index `place`. */
void batch_completed(Batch *batch, int at, int place);
/* Keeps incomplete requests for the next call. `given` is the program's status. */
void batch_close(Batch *batch, MPI_Status *given);

#endif
