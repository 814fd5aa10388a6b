/* Waits and tests from Fortran: convert arrays of requests to handles and back; indices begin at 1. */
#include "fortran.h"

#if FORTRAN_WRAPPERS

enum { STATUS_INTEGERS = sizeof(MPI_Status) / sizeof(MPI_Fint) };

typedef struct {
    int count;
    Int fortran;
    MPI_Request *requests;
    MPI_Status *statuses;    /* NULL if the program wants none */
} Batch;

static bool open_batch(Batch *batch, int count, Int requests, Int statuses)
{
    bool ignored = !statuses || (char *)statuses == &mpi_fortran_statuses_ignore_;
    size_t room = (size_t)(count > 0 ? count : 0) + 1;
    *batch = (Batch){count, requests, malloc(room * sizeof(MPI_Request)), NULL};
    batch->statuses = ignored ? NULL : calloc(room, sizeof(MPI_Status));
    for (int at = 0; batch->requests && at < count; at++)
        batch->requests[at] = PMPI_Request_f2c(requests[at]);
    return batch->requests && (ignored || batch->statuses);
}

static MPI_Status *statuses_of(const Batch *batch)
{
    return batch->statuses ? batch->statuses : MPI_STATUSES_IGNORE;
}

/* Passes `done` statuses to the program; none if the call failed. */
static int close_batch(Batch *batch, int result, int done, Int statuses)
{
    bool usable = result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS;
    for (int at = 0; usable && at < batch->count; at++)
        batch->fortran[at] = PMPI_Request_c2f(batch->requests[at]);
    for (int at = 0; usable && batch->statuses && done != MPI_UNDEFINED && at < done; at++)
        PMPI_Status_c2f(&batch->statuses[at], statuses + at * STATUS_INTEGERS);
    free(batch->requests);
    free(batch->statuses);
    return result;
}

#define OPEN(batch, count, requests, statuses)               \
    Batch batch;                                             \
    if (!open_batch(&batch, count, requests, statuses))      \
        return close_batch(&batch, MPI_ERR_NO_MEM, 0, NULL)

static int waitall(Int count, Int requests, Int statuses)
{
    OPEN(batch, *count, requests, statuses);
    return close_batch(&batch, MPI_Waitall(*count, batch.requests, statuses_of(&batch)), *count, statuses);
}
FORTRAN(waitall, (Int count, Int requests, Int statuses, Int code), waitall(count, requests, statuses))

static int testall(Int count, Int requests, Int flag, Int statuses)
{
    OPEN(batch, *count, requests, statuses);
    int all = 0, result = MPI_Testall(*count, batch.requests, &all, statuses_of(&batch));
    *flag = all != 0;
    return close_batch(&batch, result, all ? *count : 0, statuses);
}
FORTRAN(testall, (Int count, Int requests, Int flag, Int statuses, Int code),
        testall(count, requests, flag, statuses))

static int any_of(Int count, Int requests, Int index, Int flag, Int status)
{
    OPEN(batch, *count, requests, NULL);
    MPI_Status known;
    int at = MPI_UNDEFINED, one = 1;
    int result = flag ? MPI_Testany(*count, batch.requests, &at, &one, &known)
                      : MPI_Waitany(*count, batch.requests, &at, &known);
    if (flag)
        *flag = one != 0;
    *index = at == MPI_UNDEFINED ? at : at + 1;
    if (result == MPI_SUCCESS && one)
        give_status(status, &known);
    return close_batch(&batch, result, 0, NULL);
}
FORTRAN(waitany, (Int count, Int requests, Int index, Int status, Int code),
        any_of(count, requests, index, NULL, status))
FORTRAN(testany, (Int count, Int requests, Int index, Int flag, Int status, Int code),
        any_of(count, requests, index, flag, status))

static int some_of(int call(int, MPI_Request[], int *, int[], MPI_Status[]), Int count, Int requests, Int done,
                   Int indices, Int statuses)
{
    OPEN(batch, *count, requests, statuses);
    int result = call(*count, batch.requests, done, indices, statuses_of(&batch));
    bool usable = result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS;
    for (int at = 0; usable && *done != MPI_UNDEFINED && at < *done; at++)
        indices[at]++;
    return close_batch(&batch, result, *done, statuses);
}
FORTRAN(waitsome, (Int count, Int requests, Int done, Int indices, Int statuses, Int code),
        some_of(MPI_Waitsome, count, requests, done, indices, statuses))
FORTRAN(testsome, (Int count, Int requests, Int done, Int indices, Int statuses, Int code),
        some_of(MPI_Testsome, count, requests, done, indices, statuses))

static int one_of(Int request, Int flag, Int status)
{
    MPI_Request handle = PMPI_Request_f2c(*request);
    MPI_Status known;
    int done = 1, result = flag ? MPI_Test(&handle, &done, &known) : MPI_Wait(&handle, &known);
    if (flag)
        *flag = done != 0;
    if (result == MPI_SUCCESS && done) {
        *request = PMPI_Request_c2f(handle);
        give_status(status, &known);
    }
    return result;
}
FORTRAN(wait, (Int request, Int status, Int code), one_of(request, NULL, status))
FORTRAN(test, (Int request, Int flag, Int status, Int code), one_of(request, flag, status))

/* Makes a call that takes one request and may change it. */
static int with_request(int call(MPI_Request *), Int request)
{
    MPI_Request handle = PMPI_Request_f2c(*request);
    int result = call(&handle);
    if (result == MPI_SUCCESS)
        *request = PMPI_Request_c2f(handle);
    return result;
}
FORTRAN(start, (Int request, Int code), with_request(MPI_Start, request))
FORTRAN(cancel, (Int request, Int code), with_request(MPI_Cancel, request))
FORTRAN(request_free, (Int request, Int code), with_request(MPI_Request_free, request))

static int startall(Int count, Int requests)
{
    OPEN(batch, *count, requests, NULL);
    return close_batch(&batch, MPI_Startall(*count, batch.requests), 0, NULL);
}
FORTRAN(startall, (Int count, Int requests, Int code), startall(count, requests))

#endif
