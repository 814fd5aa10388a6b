#include "buffers.h"
#include "exchange.h"
#include "stages.h"

#include <stdlib.h>
#include <string.h>

/* Blocks for ranks of other sites are gathered at the representative, cross the WAN in one message per
 * other site, and are scattered there. `far` is the number of ranks at other sites. Blocks for or from
 * them are in the order of the sites, and by rank within a site. */
typedef struct {
    Levels *levels;
    size_t bytes;  /* bytes of one block */
    int far;
    char *out, *in;          /* this rank's blocks, ordered by site */
    char *taken, *given;     /* on a representative: `far` blocks for each rank of its site */
} Work;

/* The index of a site's first rank among the ranks of other sites. */
static int far_place(const Levels *levels, int site)
{
    return levels->first[site] - (site > levels->site ? levels->members : 0);
}

/* A type with the blocks of this site's ranks for another site's ranks; or, inwards, with the blocks from
 * them, ordered by source. */
static int type_between(const Work *work, int site, bool outwards, MPI_Datatype *made)
{
    const Levels *levels = work->levels;
    int others = members_of(levels, site), mine = levels->members, blocks = 0, code = MPI_ERR_NO_MEM;
    MPI_Count *counts = malloc((size_t)others * (size_t)mine * sizeof *counts);
    MPI_Aint *at = malloc((size_t)others * (size_t)mine * sizeof *at);
    for (int i = 0; counts && at && outwards && i < mine; i++) {
        counts[blocks] = (MPI_Count)((size_t)others * work->bytes);
        at[blocks++] = (MPI_Aint)((size_t)(i * work->far + far_place(levels, site)) * work->bytes);
    }
    for (int j = 0; counts && at && !outwards && j < others; j++)
        for (int i = 0; i < mine; i++) {
            counts[blocks] = (MPI_Count)work->bytes;
            at[blocks++] = (MPI_Aint)((size_t)(i * work->far + far_place(levels, site) + j) * work->bytes);
        }
    if (counts && at)
        code = type_of_blocks(blocks, counts, at, MPI_BYTE, NULL, made);
    free(counts);
    free(at);
    return code;
}

static int exchange_sites(Work *work)
{
    Levels *levels = work->levels;
    Exchange exchange;
    exchange_begin(&exchange, levels, 2 * levels->sites);
    exchange.ours = true;
    for (int step = 0; step < 2 * levels->sites && exchange.result == MPI_SUCCESS; step++) {
        int site = step % levels->sites;
        bool outwards = step >= levels->sites;
        MPI_Datatype blocks;
        if (site == levels->site)
            continue;
        exchange.result = type_between(work, site, outwards, &blocks);
        if (exchange.result != MPI_SUCCESS)
            break;
        if (outwards)
            exchange_send(&exchange, representative_of(levels, site, NO_ROOT), work->taken, 1, blocks);
        else
            exchange_receive(&exchange, representative_of(levels, site, NO_ROOT), work->given, 1, blocks);
        PMPI_Type_free(&blocks);
    }
    return exchange_end(&exchange);
}

/* `out` and `in` have the own site's blocks last. */
static int all_to_all(Work *work)
{
    Levels *levels = work->levels;
    int own = representative_of(levels, levels->site, NO_ROOT), at = levels->place[own];
    size_t far_bytes = (size_t)work->far * work->bytes;
    int code = stage_gather(levels, work->out, (int)far_bytes, work->taken, at);
    if (levels->rank == own && code == MPI_SUCCESS)
        code = exchange_sites(work);
    int near = stage_alltoall(levels, work->out + far_bytes, work->in + far_bytes, (int)work->bytes);
    int back = stage_scatter(levels, work->given, work->in, (int)far_bytes, at);
    return code != MPI_SUCCESS ? code : near != MPI_SUCCESS ? near : back;
}

static char *block_at(const Work *work, char *blocks, int rank)
{
    const Levels *levels = work->levels;
    int site = levels->site_of[rank], first = site == levels->site ? work->far : far_place(levels, site);
    return blocks + (size_t)(first + levels->place[rank]) * work->bytes;
}

static int run(Work *work, const char *send, MPI_Count count, MPI_Datatype type, char *receive,
               MPI_Count receive_count, MPI_Datatype receive_type)
{
    const Levels *levels = work->levels;
    MPI_Aint stride = (MPI_Aint)count * extent_of(type);
    MPI_Aint receive_stride = (MPI_Aint)receive_count * extent_of(receive_type);
    int code = MPI_SUCCESS;
    for (int rank = 0; rank < levels->size && code == MPI_SUCCESS; rank++)
        code = pack_bytes(send + rank * stride, count, type, block_at(work, work->out, rank), levels->whole);
    int done = all_to_all(work);
    for (int rank = 0; rank < levels->size && done == MPI_SUCCESS; rank++)
        done = unpack_bytes(block_at(work, work->in, rank), receive + rank * receive_stride, receive_count,
                            receive_type, levels->whole);
    return code != MPI_SUCCESS ? code : done;
}

bool two_level_alltoall(const void *send, MPI_Count count, MPI_Datatype type, void *receive, MPI_Count receive_count,
                        MPI_Datatype receive_type, MPI_Comm comm, int *result)
{
    size_t bytes;
    Levels *levels = NULL;
    if (data_bytes(receive_count, receive_type, &bytes))
        levels = levels_for(ALLTOALL, comm, NO_ROOT, bytes);
    if (!levels)
        return false;
    if (send == MPI_IN_PLACE) {
        send = receive;
        count = receive_count;
        type = receive_type;
    }
    size_t all = (size_t)levels->size * bytes;
    Work work = {.levels = levels, .bytes = bytes, .far = levels->size - levels->members};
    bool represents = levels->rank == representative_of(levels, levels->site, NO_ROOT);
    size_t site = represents ? (size_t)levels->members * (size_t)work.far * bytes : 0;
    char *room = malloc(2 * (all + site));
    work.out = room;
    work.in = room + all;
    work.taken = represents ? room + 2 * all : NULL;
    work.given = represents ? room + 2 * all + site : NULL;
    int code = room ? run(&work, send, count, type, receive, receive_count, receive_type) : MPI_ERR_NO_MEM;
    release(levels, room);
    *result = two_level_result(comm, code);
    return true;
}
