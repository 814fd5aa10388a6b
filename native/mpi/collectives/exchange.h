/* Messages between ranks, mostly representatives. They are counted one by one, so that the WAN traffic is
 * known.
 *
 * A large message to another site crosses in pieces that the MPI sends without asking the receiver first
 * (eagerly), because asking takes one or two round trips over the WAN. All pieces are under way at once
 * and pay the latency once, so they count as one message. */
#ifndef TOPOLANE_MPI_EXCHANGE_H
#define TOPOLANE_MPI_EXCHANGE_H

#include "levels.h"

#include <stdlib.h>

/* Above this size, bandwidth costs more than asking, and a late receiver would have to buffer everything. */
enum { MOST_IN_PIECES = 4 << 20 };

/* A posted message, with what its completion needs. */
typedef struct {
    int from;            /* rank of the sender; -1 for a send, or after arrival */
    bool counts;         /* whether it counts as a received message */
    bool ours;           /* received into memory of the library */
    int first, requests; /* of the requests for its pieces */
    char *packed;        /* the data that cross, if not `buffer` itself */
    void *buffer;        /* destination of the unpacked data */
    MPI_Count count;
    MPI_Datatype type;   /* a copy of the datatype, for a received message that is packed */
} Message;

typedef struct {
    Levels *levels;
    int result;          /* the first error, after which nothing more is posted */
    bool whole;          /* do not divide messages into pieces */
    bool ours;           /* messages are received into memory of the library, which `release` frees */
    bool more;           /* the next messages continue an earlier one and do not count again */
    int posted, room;
    MPI_Request *requests;
    int messages;
    Message *message;
} Exchange;

/* Allocates memory for `most` messages; it grows if there are more. */
void exchange_begin(Exchange *exchange, Levels *levels, int most);
void exchange_send(Exchange *exchange, int rank, const void *buffer, MPI_Count count, MPI_Datatype type);
void exchange_receive(Exchange *exchange, int rank, void *buffer, MPI_Count count, MPI_Datatype type);
/* Waits for the next message of a rank. Returns its bytes, to be received next; negative after an error. */
MPI_Count exchange_probe(Exchange *exchange, int rank);
/* Waits for the n-th posted message. After the first error, nothing waits any more. */
void exchange_wait(Exchange *exchange, int message);
/* Waits for all messages and frees their memory. After an error nothing more is received. */
int exchange_end(Exchange *exchange);

/* Abandons a request after an error. If it may go on, it does, so that the rank at its other end can
 * finish, and its memory must stay. A receive into the program's memory may not go on: it has completed or
 * is cancelled. A send that no rank has received yet cannot be ended, whichever memory it reads. */
void abandon_request(Levels *levels, bool may_go_on, MPI_Request *request);

/* Frees memory of the library that messages of a call used. If one of them was abandoned, the memory is
 * leaked instead. */
static inline void release(const Levels *levels, void *memory)
{
    if (!levels->abandoned)
        free(memory);
}

/* Like exchange_end, after an error elsewhere (`code`): does not wait for messages that this error left
 * unmatched. */
static inline int exchange_close(Exchange *exchange, int code)
{
    if (code != MPI_SUCCESS)
        exchange->result = code;
    return exchange_end(exchange);
}

#endif
