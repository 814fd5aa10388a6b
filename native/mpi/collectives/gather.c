#include "buffers.h"
#include "exchange.h"
#include "stages.h"

#include <stdlib.h>

/* The positions of the equal-sized blocks of a call's root. */
typedef struct {
    char *buffer;
    MPI_Count count;
    MPI_Datatype type;
    MPI_Aint stride;
} Table;

static Table table_of(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    return (Table){(char *)buffer, count, type, (MPI_Aint)count * extent_of(type)};
}

/* A type with the blocks of a site's ranks, which cross the WAN together. */
static int type_of_site(const Levels *levels, int site, const Table *table, MPI_Datatype *made)
{
    int blocks = members_of(levels, site);
    MPI_Count *counts = malloc((size_t)blocks * sizeof *counts);
    MPI_Aint *at = malloc((size_t)blocks * sizeof *at);
    int code = counts && at ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int i = 0; i < blocks && code == MPI_SUCCESS; i++) {
        counts[i] = table->count;
        at[i] = levels->ranks[levels->first[site] + i] * table->stride;
    }
    if (code == MPI_SUCCESS)
        code = type_of_blocks(blocks, counts, at, table->type, NULL, made);
    free(counts);
    free(at);
    return code;
}

/* Posts the messages between the root and the representatives of all other sites. */
static void post_sites(Exchange *exchange, const Table *table, bool sends)
{
    const Levels *levels = exchange->levels;
    for (int site = 0; site < levels->sites && exchange->result == MPI_SUCCESS; site++) {
        MPI_Datatype blocks;
        if (site == levels->site)
            continue;
        exchange->result = type_of_site(levels, site, table, &blocks);
        if (exchange->result != MPI_SUCCESS)
            return;
        if (sends)
            exchange_send(exchange, representative_of(levels, site, NO_ROOT), table->buffer, 1, blocks);
        else
            exchange_receive(exchange, representative_of(levels, site, NO_ROOT), table->buffer, 1, blocks);
        PMPI_Type_free(&blocks);
    }
}

/* Copies the blocks of the root's own site between `inside`, where they are in the order of its ranks, and
 * the table. */
static int move_own(Levels *levels, char *inside, size_t bytes, const Table *table, bool into_table, bool in_place)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < levels->members && code == MPI_SUCCESS; i++) {
        int rank = levels->ranks[levels->first[levels->site] + i];
        char *block = table->buffer + rank * table->stride, *side = inside + (size_t)i * bytes;
        if (rank == levels->rank && in_place)
            continue;
        code = into_table ? unpack_bytes(side, block, table->count, table->type, levels->whole)
                          : pack_bytes(block, table->count, table->type, side, levels->whole);
    }
    return code;
}

static int gather_inside(Levels *levels, const void *send, MPI_Count count, MPI_Datatype type, char *inside,
                         size_t bytes, int own)
{
    bool keeps = levels->rank == own;
    char *mine = keeps ? inside + (size_t)levels->place[own] * bytes : inside;
    int code = send == MPI_IN_PLACE ? MPI_SUCCESS : pack_bytes(send, count, type, mine, levels->whole);
    int staged = stage_gather(levels, keeps ? MPI_IN_PLACE : mine, (int)bytes, keeps ? inside : NULL,
                              levels->place[own]);
    return code != MPI_SUCCESS ? code : staged;
}

static int gather(Levels *levels, const void *send, MPI_Count count, MPI_Datatype type, const Table *table, int root,
                  size_t bytes)
{
    int own = representative_of(levels, levels->site, root), code;
    bool keeps = levels->rank == own;
    size_t blocks = keeps ? (size_t)levels->members : 1;
    char *inside = malloc(blocks * bytes);
    if (!inside)
        return MPI_ERR_NO_MEM;
    Exchange exchange;
    exchange_begin(&exchange, levels, levels->sites);
    if (levels->rank == root)
        post_sites(&exchange, table, false);
    code = gather_inside(levels, send, count, type, inside, bytes, own);
    if (keeps && levels->rank != root)
        exchange_send(&exchange, root, inside, (MPI_Count)(blocks * bytes), MPI_BYTE);
    int crossed = exchange_end(&exchange);
    if (levels->rank == root && code == MPI_SUCCESS)
        code = move_own(levels, inside, bytes, table, true, send == MPI_IN_PLACE);
    release(levels, inside);
    return code != MPI_SUCCESS ? code : crossed;
}

static int scatter_inside(Levels *levels, char *inside, void *receive, MPI_Count count, MPI_Datatype type,
                          size_t bytes, int own)
{
    bool keeps = levels->rank == own;
    char *mine = keeps ? inside + (size_t)levels->place[own] * bytes : inside;
    int code =
        stage_scatter(levels, keeps ? inside : NULL, keeps ? MPI_IN_PLACE : mine, (int)bytes, levels->place[own]);
    if (code == MPI_SUCCESS && receive != MPI_IN_PLACE)
        code = unpack_bytes(mine, receive, count, type, levels->whole);
    return code;
}

static int scatter(Levels *levels, const Table *table, void *receive, MPI_Count count, MPI_Datatype type, int root,
                   size_t bytes)
{
    int own = representative_of(levels, levels->site, root), code = MPI_SUCCESS;
    bool keeps = levels->rank == own;
    size_t blocks = keeps ? (size_t)levels->members : 1;
    char *inside = malloc(blocks * bytes);
    if (!inside)
        return MPI_ERR_NO_MEM;
    Exchange exchange;
    exchange_begin(&exchange, levels, levels->sites);
    if (levels->rank == root) {
        post_sites(&exchange, table, true);
        code = move_own(levels, inside, bytes, table, false, receive == MPI_IN_PLACE);
    } else if (keeps) {
        exchange.ours = true;
        exchange_receive(&exchange, root, inside, (MPI_Count)(blocks * bytes), MPI_BYTE);
        code = exchange_end(&exchange);
    }
    int staged = scatter_inside(levels, inside, receive, count, type, bytes, own);
    int crossed = levels->rank == root ? exchange_end(&exchange) : MPI_SUCCESS;
    if (!keeps)
        exchange_end(&exchange);
    release(levels, inside);
    return code != MPI_SUCCESS ? code : staged != MPI_SUCCESS ? staged : crossed;
}

static bool is_rank(MPI_Comm comm, int rank)
{
    const Communicator *communicator = comm == MPI_COMM_NULL ? NULL : communicator_of(comm);
    return communicator && communicator->rank == rank;
}

bool two_level_gather(const void *send, MPI_Count count, MPI_Datatype type, void *receive, MPI_Count receive_count,
                      MPI_Datatype receive_type, int root, MPI_Comm comm, int *result)
{
    size_t bytes;
    bool roots = is_rank(comm, root); /* the receiving side is significant only at the root */
    if (!(roots ? data_bytes(receive_count, receive_type, &bytes) : data_bytes(count, type, &bytes)))
        return false;
    Levels *levels = levels_for(GATHER, comm, root, bytes);
    if (!levels)
        return false;
    Table table = roots ? table_of(receive, receive_count, receive_type) : (Table){0};
    *result = two_level_result(comm, gather(levels, send, count, type, &table, root, bytes));
    return true;
}

bool two_level_scatter(const void *send, MPI_Count count, MPI_Datatype type, void *receive, MPI_Count receive_count,
                       MPI_Datatype receive_type, int root, MPI_Comm comm, int *result)
{
    size_t bytes;
    bool roots = is_rank(comm, root);
    if (!(roots ? data_bytes(count, type, &bytes) : data_bytes(receive_count, receive_type, &bytes)))
        return false;
    Levels *levels = levels_for(SCATTER, comm, root, bytes);
    if (!levels)
        return false;
    Table table = roots ? table_of(send, count, type) : (Table){0};
    *result = two_level_result(comm, scatter(levels, &table, receive, receive_count, receive_type, root, bytes));
    return true;
}
