#include "stages.h"

#include "../models/model.h"
#include "buffers.h"
#include "exchange.h"

#include <stdlib.h>

/* Copies of chunks that a representative sends itself, in all: more of them take longer than the large collectives of
 * the MPI, which divide the work. */
enum { CHUNK = 16 << 10, MOST_COPIED = 128 << 10 };

static bool in_chunks(const Levels *levels, size_t bytes)
{
    size_t copies = 0;
    for (int reached = 1; reached < levels->members; reached *= 2)
        copies++;
    return bytes > CHUNK && bytes * copies <= MOST_COPIED;
}


int stage_barrier(Levels *levels)
{
    model_barrier(&(Model){&levels->own, NULL});
    return PMPI_Barrier(levels->inside);
}

/* Large data go in chunks that the MPI sends eagerly: ranks pass on one while the next comes. */
int stage_bcast(Levels *levels, void *buffer, int count, MPI_Datatype type, int at)
{
    size_t all = 0, each = 0;
    int chunk = count, code = MPI_SUCCESS;
    if (data_bytes(count, type, &all) && data_bytes(1, type, &each) && in_chunks(levels, all))
        chunk = each < CHUNK ? (int)(CHUNK / each) : 1;
    model_bcast(&(Model){&levels->own, NULL}, at, all);
    for (int from = 0; from < count && code == MPI_SUCCESS; from += chunk)
        code = PMPI_Bcast(element_at(buffer, from, type), count - from < chunk ? count - from : chunk, type, at,
                          levels->inside);
    return code;
}

int stage_reduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int at)
{
    model_reduce(&(Model){&levels->own, NULL}, at, bytes_of(count, type));
    return PMPI_Reduce(send, receive, count, type, op, at, levels->inside);
}

int stage_ireduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int at,
                  MPI_Request *request)
{
    model_reduce(&(Model){&levels->own, NULL}, at, bytes_of(count, type));
    return PMPI_Ireduce(send, receive, count, type, op, at, levels->inside, request);
}

int stage_gather(Levels *levels, const void *send, int bytes, void *receive, int at)
{
    model_gather(&(Model){&levels->own, NULL}, at, (uint64_t)bytes);
    return PMPI_Gather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, at, levels->inside);
}

static uint64_t size_at(const void *sizes, int rank)
{
    return (uint64_t)((const int *)sizes)[rank];
}

/* Posts the chunks of a message to or from a rank of the site; how many. */
static int post_chunks(Levels *levels, int place, bool sends, char *data, int bytes, MPI_Request *requests, int *code)
{
    int posted = 0;
    for (int at = 0; at < bytes && *code == MPI_SUCCESS; at += CHUNK) {
        int length = bytes - at < CHUNK ? bytes - at : CHUNK;
        *code = sends ? PMPI_Isend(data + at, length, MPI_BYTE, place, 0, levels->inside, &requests[posted])
                      : PMPI_Irecv(data + at, length, MPI_BYTE, place, 0, levels->inside, &requests[posted]);
        posted += *code == MPI_SUCCESS;
    }
    return posted;
}

/* The MPI's own would take one rank's data after the other's and ask each first. */
int stage_gatherv(Levels *levels, const void *send, int bytes, void *receive, const int *sizes, const int *offsets,
                  int at)
{
    bool takes = levels->place[levels->rank] == at;
    int room = bytes / CHUNK + 1, posted = 0, code = MPI_SUCCESS;
    model_gatherv(&(Model){&levels->own, NULL}, at, (uint64_t)bytes, size_at, sizes);
    for (int place = 0; takes && place < levels->members; place++)
        room += sizes[place] / CHUNK + 1;
    MPI_Request *requests = malloc((size_t)room * sizeof *requests);
    if (!requests)
        return MPI_ERR_NO_MEM;
    if (!takes)
        posted = post_chunks(levels, at, true, (char *)send, bytes, requests, &code);
    for (int place = 0; takes && place < levels->members; place++)
        if (place != at)
            posted += post_chunks(levels, place, false, (char *)receive + offsets[place], sizes[place],
                                  requests + posted, &code);
    code = code != MPI_SUCCESS ? code : PMPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < posted && code != MPI_SUCCESS; i++)
        abandon_request(levels, !takes, &requests[i]);
    free(requests);
    return code;
}

int stage_scatter(Levels *levels, const void *send, void *receive, int bytes, int at)
{
    model_scatter(&(Model){&levels->own, NULL}, at, (uint64_t)bytes);
    return PMPI_Scatter(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, at, levels->inside);
}

int stage_alltoall(Levels *levels, const void *send, void *receive, int bytes)
{
    model_alltoall(&(Model){&levels->own, NULL}, (uint64_t)bytes);
    return PMPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, levels->inside);
}
