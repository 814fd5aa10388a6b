/* Puts, gets and accumulates, and the calls that wait for them. */
#include "abilities.h"
#include "calls/on_own_stack.h"
#include "requests.h"
#include "windows.h"

/* Counts data sent to the target. Returns the bytes. */
static inline uint64_t given(MPI_Win window, int target, MPI_Count count, MPI_Datatype type)
{
    uint64_t bytes = bytes_of(count, type);
    count_sent(window_rank(window, target), ONE_SIDED, 1, bytes);
    return bytes;
}

/* Counts data fetched from the target. Since the target is asked for it, this is a turn. */
static inline uint64_t fetched(MPI_Win window, int target, MPI_Count count, MPI_Datatype type)
{
    int rank = window_rank(window, target);
    uint64_t bytes = bytes_of(count, type);
    count_fetched(rank, bytes);
    return bytes;
}

/* Counts both directions, because the old value comes back. With MPI_NO_OP nothing is sent to the target. */
static inline uint64_t swapped(MPI_Win window, int target, MPI_Count count, MPI_Datatype type, MPI_Count back,
                               MPI_Datatype back_type, MPI_Op op)
{
    uint64_t bytes = op == MPI_NO_OP ? 0 : given(window, target, count, type);
    fetched(window, target, back, back_type);
    return bytes;
}

#include "calls/small.h"
#include "calls/transfers.h"
#if LARGE_COUNTS
#include "calls/large.h"
#include "calls/transfers.h"
#endif

ON_OWN_STACK(MPI_Fetch_and_op, PMPI_Fetch_and_op, 7)
EXPORT int MPI_Fetch_and_op(const void *origin, void *back, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
                            MPI_Win window)
{
    WATCH(CALL_Fetch_and_op, PMPI_Fetch_and_op(origin, back, type, target, at, op, window),
          bytes = swapped(window, target, 1, type, 1, type, op));
}

ON_OWN_STACK(MPI_Compare_and_swap, PMPI_Compare_and_swap, 7)
EXPORT int MPI_Compare_and_swap(const void *origin, const void *compared, void *back, MPI_Datatype type, int target,
                                MPI_Aint at, MPI_Win window)
{
    WATCH(CALL_Compare_and_swap, PMPI_Compare_and_swap(origin, compared, back, type, target, at, window),
          bytes = swapped(window, target, 1, type, 1, type, MPI_REPLACE));
}

#define WAITING(name, parameters, arguments)                   \
    ON_OWN_STACK(MPI_##name, PMPI_##name, NUMBER_OF arguments) \
    EXPORT int MPI_##name parameters                           \
    {                                                          \
        WATCH(CALL_##name, PMPI_##name arguments, (void)bytes); \
    }
WAITING(Win_fence, (int asserted, MPI_Win window), (asserted, window))
WAITING(Win_start, (MPI_Group group, int asserted, MPI_Win window), (group, asserted, window))
WAITING(Win_complete, (MPI_Win window), (window))
WAITING(Win_post, (MPI_Group group, int asserted, MPI_Win window), (group, asserted, window))
WAITING(Win_wait, (MPI_Win window), (window))
WAITING(Win_test, (MPI_Win window, int *flag), (window, flag))
WAITING(Win_lock, (int kind, int target, int asserted, MPI_Win window), (kind, target, asserted, window))
WAITING(Win_unlock, (int target, MPI_Win window), (target, window))
WAITING(Win_lock_all, (int asserted, MPI_Win window), (asserted, window))
WAITING(Win_unlock_all, (MPI_Win window), (window))
WAITING(Win_flush, (int target, MPI_Win window), (target, window))
WAITING(Win_flush_all, (MPI_Win window), (window))
WAITING(Win_flush_local, (int target, MPI_Win window), (target, window))
WAITING(Win_flush_local_all, (MPI_Win window), (window))
