/* Remembers requests across a call that completes some of them. */
#include "calls/batch.h"

#include <stdlib.h>

void batch_open(Batch *batch, int count, MPI_Request *request, MPI_Status *status, bool one)
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

void batch_completed(Batch *batch, int at, int place)
{
    Value value = at >= 0 && at < batch->count ? batch->value[at] : 0;
    if (!value)
        return;
    bool ignored = batch->status == MPI_STATUSES_IGNORE || batch->status == MPI_STATUS_IGNORE;
    if (!ignored || !needs_status(value))
        completed(value, ignored ? NULL : &batch->status[place]);
    batch->value[at] = 0;
}

void batch_close(Batch *batch, MPI_Status *given)
{
    for (int at = 0; batch->any && at < batch->count; at++)
        if (batch->value[at] && !is_persistent(batch->value[at]) && batch->request[at] != MPI_REQUEST_NULL)
            hold(request_key(batch->request[at]), batch->value[at]);
    if (batch->value != batch->few_values)
        free(batch->value);
    if (batch->status != given && batch->status != batch->few_statuses)
        free(batch->status);
}
