/* Persistent messages, counted each time they are started. */
#include <stdlib.h>

#include "abilities.h"
#include "calls/on_own_stack.h"
#include "communicator.h"
#include "requests.h"

static void keep(MPI_Request request, Persistent *made)
{
    if (made)
        hold(request_key(request), persistent(made));
}

static void keep_send(MPI_Request request, MPI_Comm comm, int to, uint64_t bytes)
{
    Persistent *made = calloc(1, sizeof *made);
    Event *event = malloc(sizeof *event);
    if (!made || !event) {
        free(made);
        free(event);
        return;
    }
    *event = (Event){.peer = world_rank(communicator_of(comm), to), .bytes = bytes};
    made->event = event;
    made->events = 1;
    made->peer = -1;
    keep(request, made);
}

static void keep_receive(MPI_Request request, MPI_Comm comm, int from)
{
    Persistent *made = calloc(1, sizeof *made);
    Communicator *communicator = communicator_of(comm);
    if (!made)
        return;
    made->peer = world_rank(communicator, from);
    if (from == MPI_ANY_SOURCE && communicator) {
        made->any = communicator;
        communicator_hold(communicator);
    }
    keep(request, made);
}

/* The body of a wrapper for a call that starts no communication, and so costs no time in MPI. */
#define MADE(real, then)                                           \
    do {                                                           \
        uint64_t began;                                            \
        if (!enter(&began))                                        \
            return real;                                           \
        int result = real;                                         \
        if (result == MPI_SUCCESS) {                               \
            then;                                                  \
        }                                                          \
        leave_uncounted();                                         \
        return result;                                             \
    } while (0)

#include "calls/small.h"
#include "calls/persistent_messages.h"
#if LARGE_COUNTS
#include "calls/large.h"
#include "calls/persistent_messages.h"
#endif

#if PARTITIONED
ON_OWN_STACK(MPI_Psend_init, PMPI_Psend_init, 9)
EXPORT int MPI_Psend_init(const void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int to, int tag,
                          MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    MADE(PMPI_Psend_init(buffer, partitions, count, type, to, tag, comm, info, request),
         keep_send(*request, comm, to, bytes_of(count * partitions, type)));
}

ON_OWN_STACK(MPI_Precv_init, PMPI_Precv_init, 9)
EXPORT int MPI_Precv_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int from, int tag,
                          MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    MADE(PMPI_Precv_init(buffer, partitions, count, type, from, tag, comm, info, request),
         keep_receive(*request, comm, from));
}
#endif

ON_OWN_STACK(MPI_Start, PMPI_Start, 1)
EXPORT int MPI_Start(MPI_Request *request)
{
    WATCH(CALL_Start, PMPI_Start(request), started(*request));
}

ON_OWN_STACK(MPI_Startall, PMPI_Startall, 2)
EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    WATCH(CALL_Startall, PMPI_Startall(count, requests),
          for (int at = 0; at < count; at++) started(requests[at]));
}
