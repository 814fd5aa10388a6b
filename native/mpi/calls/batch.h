/* Requests that a call waits for: what was known of each before MPI could free its handle. */
#ifndef TOPOLANE_BATCH_H
#define TOPOLANE_BATCH_H

#include "requests.h"

enum { FEW = 32 };

/* The requests that are passed to MPI, and what we knew of each before MPI could free a handle. */
typedef struct {
    int count;
    MPI_Request *request;
    Value *value;
    MPI_Status *status;      /* the program's, or our own where one is needed; else MPI_STATUSES_IGNORE */
    bool any;                /* whether one of them is known at all */
    Value few_values[FEW];
    MPI_Status few_statuses[FEW];
} Batch;

/* `one`: MPI writes a single status whatever the number of requests. */
void batch_open(Batch *batch, int count, MPI_Request *request, MPI_Status *status, bool one);
/* The request `at` is complete; its status is the `place`th. */
void batch_completed(Batch *batch, int at, int place);
/* What is not complete is kept for the next time; `given` is the program's status. */
void batch_close(Batch *batch, MPI_Status *given);

#endif
