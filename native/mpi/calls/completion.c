/* Waits and tests: find out which receives have completed, and from which ranks. */
#include "calls/batch.h"
#include "calls/on_own_stack.h"

/* The body of a wrapper. `real` uses batch.status; `then` says which requests are complete. */
#define COMPLETION(call, count, requests, status, one, plain, real, then) \
    do {                                                                  \
        uint64_t began;                                                   \
        Batch batch;                                                      \
        if (!enter(&began))                                               \
            return plain;                                                 \
        batch_open(&batch, count, requests, status, one);                 \
        int result = real;                                                \
        uint64_t spent = ticks_since(began);                              \
        if (result == MPI_SUCCESS && batch.any) {                         \
            then;                                                         \
        }                                                                 \
        batch_close(&batch, status);                                      \
        leave(call, spent, 0);                                            \
        return result;                                                    \
    } while (0)

ON_OWN_STACK(MPI_Wait, PMPI_Wait, 2)
EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    COMPLETION(CALL_Wait, 1, request, status, true, PMPI_Wait(request, status), PMPI_Wait(request, batch.status),
               batch_completed(&batch, 0, 0));
}

ON_OWN_STACK(MPI_Test, PMPI_Test, 3)
EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    COMPLETION(CALL_Test, 1, request, status, true, PMPI_Test(request, flag, status),
               PMPI_Test(request, flag, batch.status), if (*flag) batch_completed(&batch, 0, 0));
}

static void all_completed(Batch *batch)
{
    for (int at = 0; at < batch->count; at++)
        batch_completed(batch, at, at);
}

ON_OWN_STACK(MPI_Waitall, PMPI_Waitall, 3)
EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    COMPLETION(CALL_Waitall, count, requests, statuses, false, PMPI_Waitall(count, requests, statuses),
               PMPI_Waitall(count, requests, batch.status), all_completed(&batch));
}

ON_OWN_STACK(MPI_Testall, PMPI_Testall, 4)
EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    COMPLETION(CALL_Testall, count, requests, statuses, false, PMPI_Testall(count, requests, flag, statuses),
               PMPI_Testall(count, requests, flag, batch.status), if (*flag) all_completed(&batch));
}

ON_OWN_STACK(MPI_Waitany, PMPI_Waitany, 4)
EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    COMPLETION(CALL_Waitany, count, requests, status, true, PMPI_Waitany(count, requests, index, status),
               PMPI_Waitany(count, requests, index, batch.status), batch_completed(&batch, *index, 0));
}

ON_OWN_STACK(MPI_Testany, PMPI_Testany, 5)
EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    COMPLETION(CALL_Testany, count, requests, status, true, PMPI_Testany(count, requests, index, flag, status),
               PMPI_Testany(count, requests, index, flag, batch.status),
               if (*flag) batch_completed(&batch, *index, 0));
}

static void some_completed(Batch *batch, int done, const int indices[])
{
    for (int place = 0; done != MPI_UNDEFINED && place < done; place++)
        batch_completed(batch, indices[place], place);
}

ON_OWN_STACK(MPI_Waitsome, PMPI_Waitsome, 5)
EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    COMPLETION(CALL_Waitsome, count, requests, statuses, false,
               PMPI_Waitsome(count, requests, done, indices, statuses),
               PMPI_Waitsome(count, requests, done, indices, batch.status),
               some_completed(&batch, *done, indices));
}

ON_OWN_STACK(MPI_Testsome, PMPI_Testsome, 5)
EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    COMPLETION(CALL_Testsome, count, requests, statuses, false,
               PMPI_Testsome(count, requests, done, indices, statuses),
               PMPI_Testsome(count, requests, done, indices, batch.status),
               some_completed(&batch, *done, indices));
}

EXPORT int MPI_Cancel(MPI_Request *request)
{
    cancelled_some();
    return PMPI_Cancel(request);
}

EXPORT int MPI_Request_free(MPI_Request *request)
{
    if (watching && request && *request != MPI_REQUEST_NULL)
        forget(request_key(*request));
    return PMPI_Request_free(request);
}
