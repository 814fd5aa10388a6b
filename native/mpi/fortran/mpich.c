/* MPICH's `use mpi_f08` calls MPI for calls with a buffer, and PMPI for those without one, which are
 * wrapped here. Its handles are C's integers and its statuses are C's; MPICH does everything else. */
#include "calls/batch.h"

#if defined MPICH_VERSION && !defined MPI_ABI

#include <dlfcn.h>

/* Defines a wrapper of the subroutine. `code` may be missing, so the real subroutine gets a variable of
 * the wrapper. */
#define F08(name, PARAMETERS, ARGUMENTS, call, before, after)                            \
    EXPORT void mpi_##name##_f08_ PARAMETERS;                                            \
    void mpi_##name##_f08_ PARAMETERS                                                    \
    {                                                                                    \
        static void (*_Atomic known) PARAMETERS;                                         \
        void (*next) PARAMETERS = atomic_load_explicit(&known, memory_order_relaxed);    \
        if (!next) {                                                                     \
            *(void **)&next = dlsym(RTLD_NEXT, "mpi_" #name "_f08_");                    \
            atomic_store(&known, next);                                                  \
        }                                                                                \
        int result = MPI_SUCCESS, *given = code;                                         \
        uint64_t began = 0;                                                              \
        bool watched = enter(&began);                                      \
        code = &result;                                                                  \
        if (watched) {                                                                   \
            before;                                                                      \
            next ARGUMENTS;                                                              \
            uint64_t spent = ticks_since(began);                                         \
            after;                                                                       \
            leave(call, spent, 0);                                                       \
        } else {                                                                         \
            next ARGUMENTS;                                                              \
        }                                                                                \
        if (given)                                                                       \
            *given = result;                                                             \
    }

/* Defines a wrapper for calls that only end something or take time. */
#define DIRECTLY(name, PARAMETERS, call)           \
    EXPORT void mpi_##name##_f08_ PARAMETERS;      \
    void mpi_##name##_f08_ PARAMETERS              \
    {                                              \
        int result = call;                         \
        if (code)                                  \
            *code = result;                        \
    }
typedef int *Int;
DIRECTLY(init, (Int code), MPI_Init(NULL, NULL))
DIRECTLY(init_thread, (Int required, Int provided, Int code), MPI_Init_thread(NULL, NULL, *required, provided))
DIRECTLY(finalize, (Int code), MPI_Finalize())
DIRECTLY(barrier, (Int comm, Int code), MPI_Barrier(*comm))
DIRECTLY(ibarrier, (Int comm, Int request, Int code), MPI_Ibarrier(*comm, request))
DIRECTLY(start, (Int request, Int code), MPI_Start(request))
DIRECTLY(startall, (Int count, Int requests, Int code), MPI_Startall(*count, requests))
DIRECTLY(cancel, (Int request, Int code), MPI_Cancel(request))
DIRECTLY(request_free, (Int request, Int code), MPI_Request_free(request))
DIRECTLY(win_fence, (Int asserted, Int window, Int code), MPI_Win_fence(*asserted, *window))

static bool ignored(const MPI_Status *status)
{
    return (const void *)status == &MPIR_F08_MPI_STATUS_IGNORE_OBJ ||
           (const void *)status == MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
}

/* Records the completed requests: those that are gone after the call, and persistent ones if the call
 * waits for all. */
static void settle(Batch *batch, MPI_Status *report, int result, bool all)
{
    for (int at = 0; result == MPI_SUCCESS && at < batch->count; at++)
        if (batch->value[at] &&
            (is_persistent(batch->value[at]) ? all : batch->request[at] == MPI_REQUEST_NULL))
            batch_completed(batch, at, batch->count > 1 && all ? at : 0);
    batch_close(batch, report);
}

#define OPEN_ONE(count, requests)                       \
    MPI_Status own, *report = status;                   \
    Batch batch;                                        \
    if (ignored(status))                                \
        report = status = &own;                         \
    batch_open(&batch, count, requests, status, true)

#define OPEN_ALL(count, requests)                                            \
    MPI_Status *report = ignored(statuses) ? MPI_STATUSES_IGNORE : statuses; \
    Batch batch;                                                             \
    batch_open(&batch, count, requests, report, false);                      \
    statuses = batch.status == MPI_STATUSES_IGNORE ? statuses : batch.status

/* The result of a test; MPI_ERR_PENDING if the test found nothing complete. */
#define DONE(flag) (*(flag) ? result : MPI_ERR_PENDING)

F08(wait, (Int request, MPI_Status *status, Int code), (request, status, code), CALL_Wait, OPEN_ONE(1, request),
    settle(&batch, report, result, true))
F08(test, (Int request, Int flag, MPI_Status *status, Int code), (request, flag, status, code), CALL_Test,
    OPEN_ONE(1, request), settle(&batch, report, DONE(flag), true))
F08(waitany, (Int count, Int requests, Int index, MPI_Status *status, Int code),
    (count, requests, index, status, code), CALL_Waitany, OPEN_ONE(*count, requests),
    settle(&batch, report, result, false))
F08(testany, (Int count, Int requests, Int index, Int flag, MPI_Status *status, Int code),
    (count, requests, index, flag, status, code), CALL_Testany, OPEN_ONE(*count, requests),
    settle(&batch, report, DONE(flag), false))
F08(waitall, (Int count, Int requests, MPI_Status *statuses, Int code), (count, requests, statuses, code),
    CALL_Waitall, OPEN_ALL(*count, requests), settle(&batch, report, result, true))
F08(testall, (Int count, Int requests, Int flag, MPI_Status *statuses, Int code),
    (count, requests, flag, statuses, code), CALL_Testall, OPEN_ALL(*count, requests),
    settle(&batch, report, DONE(flag), true))

/* For `waitsome` and `testsome`, statuses have an order of their own, and MPICH counts indices sometimes
 * from 0, sometimes from 1. So receives from any source are not reported here. */
F08(waitsome, (Int count, Int requests, Int done, Int indices, MPI_Status *statuses, Int code),
    (count, requests, done, indices, statuses, code), CALL_Waitsome, OPEN_ALL(*count, requests),
    batch.status = MPI_STATUSES_IGNORE; settle(&batch, MPI_STATUSES_IGNORE, result, false))
F08(testsome, (Int count, Int requests, Int done, Int indices, MPI_Status *statuses, Int code),
    (count, requests, done, indices, statuses, code), CALL_Testsome, OPEN_ALL(*count, requests),
    batch.status = MPI_STATUSES_IGNORE; settle(&batch, MPI_STATUSES_IGNORE, result, false))

#endif
