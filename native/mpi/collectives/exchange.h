/* Messages between ranks, mostly representatives: counted one by one, so that what crosses the WAN is known. */
#ifndef TOPOLANE_MPI_EXCHANGE_H
#define TOPOLANE_MPI_EXCHANGE_H

#include "levels.h"

typedef struct {
    Levels *levels;
    int result;          /* the first error; nothing more is posted after it */
    int posted;
    MPI_Request *requests;
    int *from;           /* rank a request receives from, -1 for a send */
} Exchange;

/* Room for `most` messages. */
void exchange_begin(Exchange *exchange, Levels *levels, int most);
void exchange_send(Exchange *exchange, int rank, const void *buffer, MPI_Count count, MPI_Datatype type);
void exchange_receive(Exchange *exchange, int rank, void *buffer, MPI_Count count, MPI_Datatype type);
/* Waits for the next message of a rank: its bytes, to be received then. Negative after an error. */
MPI_Count exchange_probe(Exchange *exchange, int rank);
/* Waits for all messages and frees what is kept of them. */
int exchange_end(Exchange *exchange);

#endif
