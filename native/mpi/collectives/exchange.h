/* Messages between ranks, mostly representatives: counted one by one, so that what crosses the WAN is known.
 *
 * A large message to another site crosses in pieces that the MPI sends without asking the receiver first (eagerly):
 * asking takes a round trip over the WAN, or two. All pieces are under way at once and pay the latency once, so they
 * count as one message.
 */
#ifndef TOPOLANE_MPI_EXCHANGE_H
#define TOPOLANE_MPI_EXCHANGE_H

#include "levels.h"

#include <stdlib.h>

/* Above it bandwidth costs more than asking, and a receiver that is late would have to keep it all. */
enum { MOST_IN_PIECES = 4 << 20 };

/* One that is received, or whose data is not what lies in the caller's buffer. */
typedef struct {
    int from;            /* rank it comes from; -1 for a send, and once it has come */
    bool counts;         /* as received */
    bool ours;           /* received into the library's memory */
    int first, requests; /* of its pieces */
    char *packed;        /* what crosses, if not `buffer` itself */
    void *buffer;        /* where it is unpacked */
    MPI_Count count;
    MPI_Datatype type;   /* a copy, of a received message that is packed */
} Message;

typedef struct {
    Levels *levels;
    int result;          /* the first error; nothing more is posted after it */
    bool whole;          /* no pieces */
    bool ours;           /* what is received goes into memory of the library, which `release` frees */
    bool more;           /* what is posted continues a message: it does not count as another one */
    int posted, room;
    MPI_Request *requests;
    int messages;
    Message *message;
} Exchange;

/* Room for `most` messages; for more it is made. */
void exchange_begin(Exchange *exchange, Levels *levels, int most);
void exchange_send(Exchange *exchange, int rank, const void *buffer, MPI_Count count, MPI_Datatype type);
void exchange_receive(Exchange *exchange, int rank, void *buffer, MPI_Count count, MPI_Datatype type);
/* Waits for the next message of a rank: its bytes, to be received then. Negative after an error. */
MPI_Count exchange_probe(Exchange *exchange, int rank);
/* Waits for one message, the n-th that was posted. The first error ends all waiting. */
void exchange_wait(Exchange *exchange, int message);
/* Waits for all messages and frees what is kept of them. After an error nothing is received any more. */
int exchange_end(Exchange *exchange);

/* After an error: a request goes on if it may, so that the rank at its other end can finish, and its memory must stay. A
 * receive into the program's memory may not: it has come or is cancelled. A send that no rank has received yet cannot be
 * ended, whosever memory it reads. */
void abandon_request(Levels *levels, bool may_go_on, MPI_Request *request);

/* Frees memory of the library that messages of a call used, unless one of them was abandoned: then it is lost. */
static inline void release(const Levels *levels, void *memory)
{
    if (!levels->abandoned)
        free(memory);
}

/* The same after an error of something else: what it left unmatched is not waited for. */
static inline int exchange_close(Exchange *exchange, int code)
{
    if (code != MPI_SUCCESS)
        exchange->result = code;
    return exchange_end(exchange);
}

#endif
