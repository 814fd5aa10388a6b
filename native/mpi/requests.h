/* What is under way: receives that are not complete, persistent requests, messages that were probed.
 *
 * A value stands for what happens when a request completes: a receive from a known peer, one from any
 * source, or a persistent request.
 */
#ifndef TOPOLANE_REQUESTS_H
#define TOPOLANE_REQUESTS_H

#include <string.h>

#include "counts.h"

typedef struct {
    int peer;             /* world rank */
    bool received;        /* from it; else sent to it */
    uint64_t bytes;
} Event;

/* What a persistent request does each time it is started. */
typedef struct {
    _Atomic bool active;
    int call;             /* a collective's number, else 0 */
    uint64_t bytes;       /* of this rank's buffer */
    int peer;             /* receives: world rank, or -1 */
    Communicator *any;    /* receives from any source: of whom */
    int events, room;     /* sends and collectives: what they count */
    Event *event;
} Persistent;

/* 0: nothing. */
typedef uint64_t Value;

static inline Value received_from(int world_rank)
{
    return world_rank < 0 ? 0 : (Value)world_rank << 3 | 1;
}

/* Keyed by the handle; 0 is no key. Handles of messages have a key space of their own. */
static inline uint64_t request_key(MPI_Request request)
{
    uint64_t key = 0;
    memcpy(&key, &request, sizeof request);
    return key << 1;
}

static inline uint64_t message_key(MPI_Message message)
{
    uint64_t key = 0;
    memcpy(&key, &message, sizeof message);
    return key << 1 | 1;
}

void hold(uint64_t key, Value value);
/* Answers with the value and forgets it, but for that of a persistent request. */
Value take(uint64_t key);
void forget(uint64_t key);

/* A receive from a rank of a communicator, or MPI_ANY_SOURCE, that has begun. */
Value receive_begun(MPI_Comm comm, int from);
Value persistent(Persistent *made);
bool is_persistent(Value value);
/* Whether a completion of it needs the status. */
bool needs_status(Value value);
/* A receive is complete; `status` may be missing where none is needed. */
void completed(Value value, const MPI_Status *status);
/* A persistent request is started. */
void started(MPI_Request request);
void persistent_free(Value value);
/* MPI_Cancel was called some time: completions need a status from now on. */
void cancelled_some(void);

#endif
