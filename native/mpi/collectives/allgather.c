#include "segments.h"
#include "stages.h"

#include <limits.h>
#include <stdlib.h>

/* Allgather and Allgatherv: the blocks of all ranks as bytes, ordered by site. Offsets are ints, as in
 * MPI's calls with displacements. */
typedef struct {
    char *buffer;
    int *bytes, *at;      /* for each rank */
    int total;
} Row;

static int row_room(Row *row, int ranks)
{
    *row = (Row){0};
    row->bytes = malloc(2 * (size_t)ranks * sizeof *row->bytes);
    row->at = row->bytes ? row->bytes + ranks : NULL;
    return row->bytes ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* The blocks of a site. */
static char *part_of(const Levels *levels, const Row *row, int site, int *bytes)
{
    int start = row->at[levels->ranks[levels->first[site]]];
    *bytes = (site + 1 < levels->sites ? row->at[levels->ranks[levels->first[site + 1]]] : row->total) - start;
    return row->buffer + start;
}

/* Receives the blocks of the other sites in segments and sends each of them the own site's blocks, as
 * these arrive. Called by a representative. */
static int cross(Exchange *exchange, Gathering *gathering, const Row *row)
{
    Levels *levels = exchange->levels;
    int bytes, own_bytes, code = MPI_SUCCESS;
    char *part, *own_part = part_of(levels, row, levels->site, &own_bytes);
    for (int site = 0; site < levels->sites; site++)
        if (site != levels->site) {
            part = part_of(levels, row, site, &bytes);
            post_segments(exchange, representative_of(levels, site, NO_ROOT), false, part, bytes, MPI_BYTE);
        }
    int segment = segment_of(own_bytes, MPI_BYTE);
    for (int at = 0; at < own_bytes && code == MPI_SUCCESS; at += segment) {
        int length = segment_length(own_bytes, segment, at);
        code = gathering_wait(gathering, (int64_t)at + length);
        for (int site = 0; site < levels->sites && code == MPI_SUCCESS; site++)
            if (site != levels->site)
                exchange_send(exchange, representative_of(levels, site, NO_ROOT), own_part + at, length, MPI_BYTE);
        exchange->more = true;
    }
    exchange->more = false;
    return code;
}

/* Gathers the site's blocks at its representative, which exchanges them with the other sites. */
static int gather_and_cross(Exchange *exchange, const Row *row, int own)
{
    Levels *levels = exchange->levels;
    Gathering gathering;
    int *sizes = malloc((size_t)levels->members * sizeof *sizes), bytes;
    if (!sizes)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < levels->members; i++)
        sizes[i] = row->bytes[levels->ranks[levels->first[levels->site] + i]];
    int code = gathering_begin(&gathering, levels, part_of(levels, row, levels->site, &bytes), sizes,
                               levels->place[own]);
    if (levels->rank == own && code == MPI_SUCCESS)
        code = cross(exchange, &gathering, row);
    code = gathering_end(&gathering, code);
    free(sizes);
    return code;
}

/* Distributes the site's own blocks inside it while the others' blocks are under way, and then those as
 * they arrive. */
static int all_gather(Levels *levels, const Row *row)
{
    int own = representative_of(levels, levels->site, NO_ROOT), bytes;
    Exchange exchange;
    exchange_begin(&exchange, levels, 2 * levels->sites);
    exchange.ours = true;
    int code = gather_and_cross(&exchange, row, own);
    if (code != MPI_SUCCESS)
        exchange.result = code;
    char *part = part_of(levels, row, levels->site, &bytes);
    int inside = bytes ? stage_bcast(levels, part, bytes, MPI_BYTE, levels->place[own]) : MPI_SUCCESS;
    code = code == MPI_SUCCESS ? inside : code;
    for (int site = 0, message = 0; site < levels->sites; site++) {
        if (site == levels->site)
            continue;
        part = part_of(levels, row, site, &bytes);
        inside = spread_segments(&exchange, &message, part, bytes, MPI_BYTE, levels->place[own]);
        code = code == MPI_SUCCESS ? inside : code;
    }
    int crossed = exchange_end(&exchange);
    return crossed != MPI_SUCCESS ? crossed : code;
}

static int run(Levels *levels, Row *row, const void *send, MPI_Count count, MPI_Datatype type, char *receive,
               Blocks blocks, MPI_Datatype receive_type)
{
    MPI_Aint extent = extent_of(receive_type);
    bool in_place = send == MPI_IN_PLACE;
    row->buffer = malloc((size_t)row->total);
    if (!row->buffer)
        return MPI_ERR_NO_MEM;
    char *mine = row->buffer + row->at[levels->rank];
    int code = in_place ? pack_bytes(receive + block_start(blocks, levels->rank) * extent,
                                     block_count(blocks, levels->rank), receive_type, mine, levels->whole)
                        : pack_bytes(send, count, type, mine, levels->whole);
    int done = all_gather(levels, row);
    for (int rank = 0; rank < levels->size && done == MPI_SUCCESS; rank++)
        if (rank != levels->rank || !in_place)
            done = unpack_bytes(row->buffer + row->at[rank], receive + block_start(blocks, rank) * extent,
                                block_count(blocks, rank), receive_type, levels->whole);
    release(levels, row->buffer);
    return code != MPI_SUCCESS ? code : done;
}

/* Computes the bytes of each rank. Returns false if the sizes exceed an int or are all 0. The result is
 * the same on all ranks, because all know all sizes. */
static bool measure(Row *row, int ranks, Blocks blocks, MPI_Datatype type)
{
    int64_t total = 0;
    for (int rank = 0; rank < ranks; rank++) {
        size_t bytes;
        if (!data_bytes(block_count(blocks, rank), type, &bytes) || bytes > INT_MAX)
            return false;
        row->bytes[rank] = (int)bytes;
        total += (int64_t)bytes;
        if (total > INT_MAX)
            return false;
    }
    row->total = (int)total;
    return total > 0;
}

static void lay_out(Row *row, const Levels *levels)
{
    int at = 0;
    for (int i = 0; i < levels->size; i++) {
        row->at[levels->ranks[i]] = at;
        at += row->bytes[levels->ranks[i]];
    }
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
    if (measure(&row, communicator->size, receive_blocks, receive_type))
        levels = levels_for(ALLGATHERV, comm, NO_ROOT, (size_t)(row.total / communicator->size + 1));
    if (levels) {
        lay_out(&row, levels);
        *result = two_level_result(comm, run(levels, &row, send, count, type, receive, receive_blocks, receive_type));
    }
    free(row.bytes);
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
    if (code == MPI_SUCCESS && measure(&row, levels->size, blocks, receive_type)) {
        lay_out(&row, levels);
        code = run(levels, &row, send, count, type, receive, blocks, receive_type);
    }
    *result = two_level_result(comm, code);
    free(counts);
    free(starts);
    free(row.bytes);
    return true;
}
