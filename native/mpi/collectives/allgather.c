#include "buffers.h"
#include "exchange.h"
#include "stages.h"

#include <limits.h>
#include <stdlib.h>

/* Allgather and Allgatherv: all blocks side by side, in the order of the ranks, as bytes. Offsets are ints: those
 * of MPI's calls with displacements. */
typedef struct {
    char *buffer;
    int *bytes, *at;      /* of every rank */
    int total;
    MPI_Count *counts;    /* of a site's blocks, for a type of them */
    MPI_Aint *starts;
} Row;

static int row_room(Row *row, int ranks)
{
    *row = (Row){0};
    row->bytes = malloc(2 * (size_t)ranks * sizeof *row->bytes);
    row->counts = malloc((size_t)ranks * sizeof *row->counts);
    row->starts = malloc((size_t)ranks * sizeof *row->starts);
    row->at = row->bytes ? row->bytes + ranks : NULL;
    return row->bytes && row->counts && row->starts ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void row_free(Row *row)
{
    free(row->bytes);
    free(row->counts);
    free(row->starts);
}

static int gather_inside(Levels *levels, Row *row, int own)
{
    if (levels->rank != own)
        return stage_gatherv(levels, row->buffer + row->at[levels->rank], row->bytes[levels->rank], NULL, NULL, NULL,
                             levels->place[own]);
    int *bytes = malloc(2 * (size_t)levels->members * sizeof *bytes), *at = bytes + levels->members;
    if (!bytes)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < levels->members; i++) {
        int rank = levels->ranks[levels->first[levels->site] + i];
        bytes[i] = row->bytes[rank];
        at[i] = row->at[rank];
    }
    int code = stage_gatherv(levels, MPI_IN_PLACE, 0, row->buffer, bytes, at, levels->place[own]);
    free(bytes);
    return code;
}

static int type_of_site(const Levels *levels, const Row *row, int site, MPI_Datatype *made)
{
    for (int i = 0; i < members_of(levels, site); i++) {
        int rank = levels->ranks[levels->first[site] + i];
        row->counts[i] = row->bytes[rank];
        row->starts[i] = row->at[rank];
    }
    return type_of_blocks(members_of(levels, site), row->counts, row->starts, MPI_BYTE, NULL, made);
}

/* Each representative gives its site's blocks to all others. */
static int exchange_sites(Levels *levels, Row *row)
{
    Exchange exchange;
    exchange_begin(&exchange, levels, 2 * levels->sites);
    for (int site = 0; site < levels->sites && exchange.result == MPI_SUCCESS; site++) {
        MPI_Datatype blocks;
        exchange.result = type_of_site(levels, row, site, &blocks);
        if (exchange.result != MPI_SUCCESS)
            break;
        if (site != levels->site)
            exchange_receive(&exchange, representative_of(levels, site, NO_ROOT), row->buffer, 1, blocks);
        for (int other = 0; site == levels->site && other < levels->sites; other++)
            if (other != site)
                exchange_send(&exchange, representative_of(levels, other, NO_ROOT), row->buffer, 1, blocks);
        PMPI_Type_free(&blocks);
    }
    return exchange_end(&exchange);
}

static int all_gather(Levels *levels, Row *row)
{
    int own = representative_of(levels, levels->site, NO_ROOT), code = gather_inside(levels, row, own);
    if (levels->rank == own && code == MPI_SUCCESS)
        code = exchange_sites(levels, row);
    int inside = stage_bcast(levels, row->buffer, row->total, MPI_BYTE, levels->place[own]);
    return code != MPI_SUCCESS ? code : inside;
}

/* With a buffer of its own where the caller's has gaps. */
static int run(Levels *levels, Row *row, const void *send, MPI_Count count, MPI_Datatype type, char *receive,
               Blocks blocks, MPI_Datatype receive_type)
{
    MPI_Aint extent = extent_of(receive_type);
    bool direct = is_plain(receive_type);
    for (int rank = 0; rank < levels->size && direct; rank++)
        direct = block_start(blocks, rank) * extent == row->at[rank];
    row->buffer = direct ? receive : malloc((size_t)row->total);
    if (!row->buffer)
        return MPI_ERR_NO_MEM;
    char *mine = row->buffer + row->at[levels->rank];
    int code = MPI_SUCCESS;
    if (send != MPI_IN_PLACE)
        code = pack_bytes(send, count, type, mine, levels->whole);
    else if (!direct)
        code = pack_bytes(receive + block_start(blocks, levels->rank) * extent, block_count(blocks, levels->rank),
                          receive_type, mine, levels->whole);
    int done = all_gather(levels, row);
    for (int rank = 0; rank < levels->size && !direct && done == MPI_SUCCESS; rank++)
        if (rank != levels->rank || send != MPI_IN_PLACE)
            done = unpack_bytes(row->buffer + row->at[rank], receive + block_start(blocks, rank) * extent,
                                block_count(blocks, rank), receive_type, levels->whole);
    if (!direct)
        free(row->buffer);
    return code != MPI_SUCCESS ? code : done;
}

/* Fills in a row; false where the sizes are more than ints hold, or nothing: the same on all ranks, as all know
 * all sizes. */
static bool lay_out(Row *row, int ranks, Blocks blocks, MPI_Datatype type)
{
    int64_t total = 0;
    for (int rank = 0; rank < ranks; rank++) {
        size_t bytes;
        if (!data_bytes(block_count(blocks, rank), type, &bytes) || bytes > INT_MAX)
            return false;
        row->bytes[rank] = (int)bytes;
        row->at[rank] = (int)total;
        total += (int64_t)bytes;
        if (total > INT_MAX)
            return false;
    }
    row->total = (int)total;
    return total > 0;
}

bool two_level_allgatherv(const void *send, MPI_Count count, MPI_Datatype type, void *receive, Blocks receive_blocks,
                          MPI_Datatype receive_type, MPI_Comm comm, int *result)
{
    Row row;
    if (two_level_settings.mode == NEVER || comm == MPI_COMM_NULL)
        return false;
    const Communicator *communicator = communicator_of(comm);
    if (!communicator || communicator->inter || row_room(&row, communicator->size) != MPI_SUCCESS)
        return false;
    Levels *levels = NULL;
    if (lay_out(&row, communicator->size, receive_blocks, receive_type))
        levels = levels_for(ALLGATHERV, comm, NO_ROOT, (size_t)(row.total / communicator->size + 1));
    if (levels)
        *result = two_level_result(comm, run(levels, &row, send, count, type, receive, receive_blocks, receive_type));
    row_free(&row);
    return levels;
}

bool two_level_allgather(const void *send, MPI_Count count, MPI_Datatype type, void *receive, MPI_Count receive_count,
                         MPI_Datatype receive_type, MPI_Comm comm, int *result)
{
    size_t bytes;
    Levels *levels = NULL;
    if (data_bytes(receive_count, receive_type, &bytes))
        levels = levels_for(ALLGATHER, comm, NO_ROOT, bytes);
    if (!levels)
        return false;
    size_t ranks = (size_t)levels->size;
    MPI_Count *counts = malloc(ranks * sizeof *counts);
    MPI_Aint *starts = malloc(ranks * sizeof *starts);
    Row row;
    int code = row_room(&row, levels->size);
    if (!counts || !starts)
        code = MPI_ERR_NO_MEM;
    for (int rank = 0; rank < levels->size && code == MPI_SUCCESS; rank++) {
        counts[rank] = receive_count;
        starts[rank] = (MPI_Aint)receive_count * rank;
    }
    Blocks blocks = {NULL, NULL, counts, starts};
    if (code == MPI_SUCCESS && lay_out(&row, levels->size, blocks, receive_type))
        code = run(levels, &row, send, count, type, receive, blocks, receive_type);
    *result = two_level_result(comm, code);
    free(counts);
    free(starts);
    row_free(&row);
    return true;
}
