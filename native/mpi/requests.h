/* Active requests: incomplete receives, persistent requests, and probed messages.
 *
 * A value stands for what happens when a request completes: a receive from a known peer, one from any
 * source, or a persistent request. */
#ifndef TOPOLANE_REQUESTS_H
#define TOPOLANE_REQUESTS_H

#include <string.h>

#include "counts.h"

typedef struct {
    int peer;             /* world rank */
    bool received;        /* received from it; otherwise sent to it */
    uint64_t bytes;
} Event;

/* What a persistent request counts each time it is started. */
typedef struct {
    _Atomic bool active;
    int call;             /* the number of a collective; otherwise 0 */
    uint64_t bytes;       /* of this rank's buffer */
    int peer;             /* for receives: world rank, or -1 */
    Communicator *any;    /* for receives from any source: their communicator */
    int events, room;     /* for sends and collectives: what they count */
    Event *event;
} Persistent;

/* 0 stands for nothing. */
typedef uint64_t Value;

static inline Value received_from(int world_rank)
{
    return world_rank < 0 ? 0 : (Value)world_rank << 3 | 1;
}

/* The key of a request's handle; 0 is not a key. Handles of messages have separate keys. */
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
/* Returns the value of a key and removes it, except that of a persistent request. */
Value take(uint64_t key);
void forget(uint64_t key);

/* The value of a receive that has begun, from a rank of a communicator or MPI_ANY_SOURCE. */
Value receive_begun(MPI_Comm comm, int from);
Value persistent(Persistent *made);
bool is_persistent(Value value);
/* Whether the completion of a value needs the status. */
bool needs_status(Value value);
/* Counts a completed receive; `status` may be missing if it is not needed. */
void completed(Value value, const MPI_Status *status);
/* Counts the start of a persistent request. */
void started(MPI_Request request);
void persistent_free(Value value);
/* Records that MPI_Cancel was called: from now on completions need a status. */
void cancelled_some(void);

#endif
