/* Waits and tests: which receives have become complete, and from whom. */
#include <stdlib.h>

#include "requests.h"

enum { FEW = 32 };

/* What MPI is told of, and what we knew of it before MPI could free a handle. */
typedef struct {
    int count;
    MPI_Request *request;
    Value *value;
    MPI_Status *status;      /* the program's, or our own where one is needed; else MPI_STATUSES_IGNORE */
    bool any;                /* whether one of them is known at all */
    Value few_values[FEW];
    MPI_Status few_statuses[FEW];
} Batch;

/* `one`: MPI writes a single status whatever the number of requests. */
static void batch_open(Batch *batch, int count, MPI_Request *request, MPI_Status *status, bool one)
{
    batch->count = request && count > 0 ? count : 0;
    batch->request = request;
    batch->status = status;
    batch->any = false;
    batch->value = batch->few_values;
    if (batch->count > FEW && !(batch->value = malloc((size_t)batch->count * sizeof *batch->value)))
        batch->count = 0;
    bool wanted = false;
    for (int at = 0; at < batch->count; at++) {
        Value value = request[at] == MPI_REQUEST_NULL ? 0 : take(request_key(request[at]));
        batch->value[at] = value;
        batch->any |= value != 0;
        wanted |= needs_status(value);
    }
    bool ignored = one ? status == MPI_STATUS_IGNORE : status == MPI_STATUSES_IGNORE;
    if (!wanted || !ignored)
        return;
    batch->status = batch->few_statuses;
    if (!one && batch->count > FEW)
        batch->status = malloc((size_t)batch->count * sizeof *batch->status);
    if (!batch->status)
        batch->status = status;
}

/* The request `at` is complete; its status is the `place`th. */
static void batch_completed(Batch *batch, int at, int place)
{
    Value value = at >= 0 && at < batch->count ? batch->value[at] : 0;
    if (!value)
        return;
    bool ignored = batch->status == MPI_STATUSES_IGNORE || batch->status == MPI_STATUS_IGNORE;
    if (!ignored || !needs_status(value))
        completed(value, ignored ? NULL : &batch->status[place]);
    batch->value[at] = 0;
}

/* What is not complete is kept for the next time. */
static void batch_close(Batch *batch, MPI_Status *given)
{
    for (int at = 0; batch->any && at < batch->count; at++)
        if (batch->value[at] && !is_persistent(batch->value[at]) && batch->request[at] != MPI_REQUEST_NULL)
            hold(request_key(batch->request[at]), batch->value[at]);
    if (batch->value != batch->few_values)
        free(batch->value);
    if (batch->status != given && batch->status != batch->few_statuses)
        free(batch->status);
}

/* A wrapper: `real` sees batch.status; `then` says which are complete. */
#define COMPLETION(call, count, requests, status, one, plain, real, then) \
    do {                                                                  \
        uint64_t began;                                                   \
        Batch batch;                                                      \
        if (!enter(&began))                                               \
            return plain;                                                 \
        batch_open(&batch, count, requests, status, one);                 \
        int result = real;                                                \
        uint64_t spent = ticks() - began;                                 \
        if (result == MPI_SUCCESS && batch.any) {                         \
            then;                                                         \
        }                                                                 \
        batch_close(&batch, status);                                      \
        leave(call, spent, 0);                                            \
        return result;                                                    \
    } while (0)

EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    COMPLETION(CALL_Wait, 1, request, status, true, PMPI_Wait(request, status), PMPI_Wait(request, batch.status),
               batch_completed(&batch, 0, 0));
}

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

EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    COMPLETION(CALL_Waitall, count, requests, statuses, false, PMPI_Waitall(count, requests, statuses),
               PMPI_Waitall(count, requests, batch.status), all_completed(&batch));
}

EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    COMPLETION(CALL_Testall, count, requests, statuses, false, PMPI_Testall(count, requests, flag, statuses),
               PMPI_Testall(count, requests, flag, batch.status), if (*flag) all_completed(&batch));
}

EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    COMPLETION(CALL_Waitany, count, requests, status, true, PMPI_Waitany(count, requests, index, status),
               PMPI_Waitany(count, requests, index, batch.status), batch_completed(&batch, *index, 0));
}

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

EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    COMPLETION(CALL_Waitsome, count, requests, statuses, false,
               PMPI_Waitsome(count, requests, done, indices, statuses),
               PMPI_Waitsome(count, requests, done, indices, batch.status),
               some_completed(&batch, *done, indices));
}

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
