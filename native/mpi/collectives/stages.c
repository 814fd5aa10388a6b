#include "stages.h"

#include "../models/model.h"
#include "buffers.h"
#include "exchange.h"

#include <stdlib.h>

/* The MPI sends chunks eagerly. If one rank would send more bytes of copies than MOST_COPIED, the MPI's
 * collectives for large data are faster, because they divide the work. */
enum { CHUNK = 16 << 10, MOST_COPIED = 128 << 10, FEW_RANKS = 8 };

/* The number of ranks to which a representative sends in a tree. */
static size_t copies_of(const Levels *levels)
{
    size_t copies = 0;
    for (int reached = 1; reached < levels->members; reached *= 2)
        copies++;
    return copies;
}

static bool in_chunks(const Levels *levels, size_t bytes)
{
    return bytes > CHUNK && levels->members > 1 && bytes * copies_of(levels) <= MOST_COPIED;
}

/* Whether a chain is faster than a tree. In a chain every cable carries the data once; in a tree the
 * representative's cable carries every copy. But a chunk, and the cost of a message (about that of a
 * chunk), pass through one rank after the other. With many ranks, hosts have several, and an MPI's own
 * broadcast is seldom a pure tree; then a chain is faster if the data are at least as long as what passes
 * this way (benches/mpi/chain.py). */
static bool in_a_chain(const Levels *levels, size_t bytes)
{
    size_t further = levels->members > 2 ? (size_t)levels->members - 2 : 0;
    size_t saved = levels->members > FEW_RANKS ? 1 : copies_of(levels) - 1;
    return further && bytes > CHUNK && bytes <= MOST_IN_PIECES && further * 2 * CHUNK <= saved * bytes;
}

int stage_barrier(Levels *levels)
{
    model_barrier(&(Model){&levels->own, NULL});
    return PMPI_Barrier(levels->inside);
}

/* Each rank passes a chunk on while further ones arrive, even after an error, because the ranks behind it
 * wait for all. */
static int chain(Levels *levels, char *data, int count, MPI_Datatype type, int chunk, int at)
{
    int chunks = (count - 1) / chunk + 1, code = MPI_SUCCESS, received = 0, sent = 0;
    int place = levels->place[levels->rank], next = (place + 1) % levels->members;
    int before = (place + levels->members - 1) % levels->members;
    MPI_Request *in = malloc(2 * (size_t)chunks * sizeof *in), *out = in + chunks;
    if (!in)
        return MPI_ERR_NO_MEM;
#define ELEMENTS(i) element_at(data, (i) * chunk, type), (count - (i) * chunk < chunk ? count - (i) * chunk : chunk), type
    for (; place != at && received < chunks && code == MPI_SUCCESS; received += code == MPI_SUCCESS)
        code = PMPI_Irecv(ELEMENTS(received), before, levels->tag, levels->inside, &in[received]);
    for (int i = 0; i < chunks; i++) {
        int came = i < received ? PMPI_Wait(&in[i], MPI_STATUS_IGNORE) : MPI_SUCCESS, passed = MPI_SUCCESS;
        if (next != at)
            passed = PMPI_Isend(ELEMENTS(i), next, levels->tag, levels->inside, &out[sent]);
        sent += next != at && passed == MPI_SUCCESS;
        code = code != MPI_SUCCESS ? code : came != MPI_SUCCESS ? came : passed;
    }
#undef ELEMENTS
    if (code == MPI_SUCCESS)
        code = PMPI_Waitall(sent, out, MPI_STATUSES_IGNORE);
    for (int i = 0; i < sent && code != MPI_SUCCESS; i++)
        abandon_request(levels, true, &out[i]);
    free(in);
    return code;
}

/* Large data go in chunks that the MPI sends eagerly, so that ranks pass one on while the next arrives. */
int stage_bcast(Levels *levels, void *buffer, int count, MPI_Datatype type, int at)
{
    size_t all = 0, each = 0;
    int chunk = count, code = MPI_SUCCESS;
    bool known = data_bytes(count, type, &all) && data_bytes(1, type, &each), chained = known && in_a_chain(levels, all);
    model_bcast(&(Model){&levels->own, NULL}, at, all);
    if (chained || (known && in_chunks(levels, all)))
        chunk = each < CHUNK ? (int)(CHUNK / each) : 1;
    if (chained)
        return chain(levels, buffer, count, type, chunk, at);
    for (int from = 0; from < count; from += chunk) {
        int passed = PMPI_Bcast(element_at(buffer, from, type), count - from < chunk ? count - from : chunk, type, at,
                                levels->inside);
        code = code == MPI_SUCCESS ? passed : code;
    }
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

/* The MPI's own gather would take the ranks' data one after the other and ask each rank first. */
int gathering_begin(Gathering *gathering, Levels *levels, char *part, const int *sizes, int at)
{
    int place = levels->place[levels->rank], room = 0, code = MPI_SUCCESS;
    int64_t from = 0;
    bool takes = place == at;
    *gathering = (Gathering){.levels = levels};
    model_gatherv(&(Model){&levels->own, NULL}, at, (uint64_t)sizes[place], size_at, sizes);
    for (int other = 0; other < levels->members; other++)
        room += sizes[other] / CHUNK + 1;
    gathering->requests = malloc((size_t)room * sizeof *gathering->requests);
    gathering->begins = malloc((size_t)room * sizeof *gathering->begins);
    if (!gathering->requests || !gathering->begins)
        return MPI_ERR_NO_MEM;
    for (int other = 0; other < levels->members; from += sizes[other++]) {
        int64_t end = from + sizes[other];
        for (int64_t begin = from; begin < end && code == MPI_SUCCESS && takes != (other == place); begin += CHUNK) {
            MPI_Request *request = &gathering->requests[gathering->posted];
            int length = end - begin < CHUNK ? (int)(end - begin) : CHUNK;
            code = takes ? PMPI_Irecv(part + begin, length, MPI_BYTE, other, levels->tag, levels->inside, request)
                         : PMPI_Isend(part + begin, length, MPI_BYTE, at, levels->tag, levels->inside, request);
            gathering->begins[gathering->posted] = begin;
            gathering->posted += code == MPI_SUCCESS;
        }
    }
    return code;
}

int gathering_wait(Gathering *gathering, int64_t bytes)
{
    int last = gathering->done;
    while (last < gathering->posted && gathering->begins[last] < bytes)
        last++;
    int code = PMPI_Waitall(last - gathering->done, gathering->requests + gathering->done, MPI_STATUSES_IGNORE);
    gathering->done = last;
    return code;
}

int gathering_end(Gathering *gathering, int code)
{
    if (code == MPI_SUCCESS)
        code = gathering_wait(gathering, INT64_MAX);
    for (int i = 0; i < gathering->posted && code != MPI_SUCCESS; i++)
        abandon_request(gathering->levels, true, &gathering->requests[i]);
    free(gathering->requests);
    free(gathering->begins);
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
