/* Messages: the calls that send, receive and probe. */
#include "abilities.h"
#include "calls/on_own_stack.h"
#include "requests.h"

static inline uint64_t sent(MPI_Comm comm, int to, MPI_Count count, MPI_Datatype type)
{
    uint64_t bytes = bytes_of(count, type);
    count_sent(world_rank(communicator_of(comm), to), POINT_TO_POINT, 1, bytes);
    return bytes;
}

static inline void received(MPI_Comm comm, int from, const MPI_Status *status)
{
    int source = from == MPI_ANY_SOURCE ? status->MPI_SOURCE : from;
    count_received(world_rank(communicator_of(comm), source), POINT_TO_POINT);
}

/* Provides a status if the program wants none but the source must be known. */
#define SOURCE_KNOWN(from, status) \
    MPI_Status own; \
    if ((from) == MPI_ANY_SOURCE && (status) == MPI_STATUS_IGNORE) \
        (status) = &own

#include "calls/small.h"
#include "calls/messages.h"
#if LARGE_COUNTS
#include "calls/large.h"
#include "calls/messages.h"
#endif

ON_OWN_STACK(MPI_Probe, PMPI_Probe, 4)
EXPORT int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    WATCH(CALL_Probe, PMPI_Probe(from, tag, comm, status), );
}

ON_OWN_STACK(MPI_Iprobe, PMPI_Iprobe, 5)
EXPORT int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    WATCH(CALL_Iprobe, PMPI_Iprobe(from, tag, comm, flag, status), );
}

/* Remembers the sender of a probed message until it is received. */
static inline void probed(MPI_Comm comm, MPI_Message message, const MPI_Status *status)
{
    hold(message_key(message), received_from(world_rank(communicator_of(comm), status->MPI_SOURCE)));
}

ON_OWN_STACK(MPI_Mprobe, PMPI_Mprobe, 5)
EXPORT int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    WATCH(CALL_Mprobe, PMPI_Mprobe(from, tag, comm, message, status), probed(comm, *message, status));
}

ON_OWN_STACK(MPI_Improbe, PMPI_Improbe, 6)
EXPORT int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    WATCH(CALL_Improbe, PMPI_Improbe(from, tag, comm, flag, message, status),
          if (*flag) probed(comm, *message, status));
}
