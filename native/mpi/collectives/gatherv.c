#include "buffers.h"
#include "exchange.h"

#include <stdlib.h>

/* Gatherv and Scatterv. Only the root knows the sizes, so that inside a site the messages go one by one, as MPI
 * itself sends them; the pieces of a site cross the WAN in one message. */

/* The blocks of a message: their positions from a buffer's start or from MPI_BOTTOM. */
typedef struct {
    int blocks;
    MPI_Count *counts;
    MPI_Aint *at;
    MPI_Datatype *types;
} Pieces;

static int pieces_room(Pieces *pieces, int most)
{
    size_t room = (size_t)most + 1;
    pieces->blocks = 0;
    pieces->counts = malloc(room * sizeof *pieces->counts);
    pieces->at = malloc(room * sizeof *pieces->at);
    pieces->types = malloc(room * sizeof *pieces->types);
    return pieces->counts && pieces->at && pieces->types ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void pieces_add(Pieces *pieces, const void *buffer, MPI_Count count, MPI_Datatype type)
{
    pieces->counts[pieces->blocks] = count;
    PMPI_Get_address(buffer, &pieces->at[pieces->blocks]);
    pieces->types[pieces->blocks++] = type;
}

static void pieces_free(Pieces *pieces)
{
    free(pieces->counts);
    free(pieces->at);
    free(pieces->types);
}

static void post_pieces(Exchange *exchange, int rank, const Pieces *pieces, bool sends)
{
    MPI_Datatype type;
    if (exchange->result != MPI_SUCCESS)
        return;
    exchange->result =
        type_of_blocks(pieces->blocks, pieces->counts, pieces->at, MPI_BYTE, pieces->types, &type);
    if (exchange->result != MPI_SUCCESS)
        return;
    exchange->whole = true; /* not in pieces: the receiver may probe the size, and MPICH does not pack at MPI_BOTTOM */
    if (sends)
        exchange_send(exchange, rank, MPI_BOTTOM, 1, type);
    else
        exchange_receive(exchange, rank, MPI_BOTTOM, 1, type);
    PMPI_Type_free(&type);
}

/* Appends the blocks of a site at the root to `pieces`. */
static void add_site(Pieces *pieces, const Levels *levels, int site, const void *buffer, Blocks blocks,
                     MPI_Datatype type)
{
    MPI_Aint extent = extent_of(type);
    for (int i = 0; i < members_of(levels, site); i++) {
        int rank = levels->ranks[levels->first[site] + i];
        pieces_add(pieces, (const char *)buffer + block_start(blocks, rank) * extent, block_count(blocks, rank), type);
    }
}

static int gatherv_root(Levels *levels, const void *send, MPI_Count count, MPI_Datatype type, void *receive,
                        Blocks blocks, MPI_Datatype receive_type)
{
    MPI_Aint extent = extent_of(receive_type);
    Pieces pieces;
    Exchange exchange;
    exchange_begin(&exchange, levels, levels->members + levels->sites + 1);
    if (pieces_room(&pieces, levels->size) != MPI_SUCCESS)
        exchange.result = MPI_ERR_NO_MEM;
    for (int site = 0; site < levels->sites && exchange.result == MPI_SUCCESS; site++) {
        pieces.blocks = 0;
        if (site == levels->site)
            continue;
        add_site(&pieces, levels, site, receive, blocks, receive_type);
        post_pieces(&exchange, representative_of(levels, site, NO_ROOT), &pieces, false);
    }
    for (int i = 0; i < levels->members; i++) {
        int rank = levels->ranks[levels->first[levels->site] + i];
        if (rank != levels->rank || send != MPI_IN_PLACE)
            exchange_receive(&exchange, rank, (char *)receive + block_start(blocks, rank) * extent,
                             block_count(blocks, rank), receive_type);
    }
    if (send != MPI_IN_PLACE)
        exchange_send(&exchange, levels->rank, send, count, type);
    pieces_free(&pieces);
    return exchange_end(&exchange);
}

/* Receives the data of the site's ranks and sends all on in one message. */
static int gatherv_representative(Levels *levels, const void *send, MPI_Count count, MPI_Datatype type, int root)
{
    Pieces pieces;
    Exchange exchange;
    char **taken = calloc((size_t)levels->members, sizeof *taken);
    exchange_begin(&exchange, levels, levels->members + 1);
    exchange.ours = true;
    if (pieces_room(&pieces, levels->members) != MPI_SUCCESS || !taken)
        exchange.result = MPI_ERR_NO_MEM;
    for (int i = 0; i < levels->members && exchange.result == MPI_SUCCESS; i++) {
        int rank = levels->ranks[levels->first[levels->site] + i];
        if (rank == levels->rank) {
            pieces_add(&pieces, send, count, type);
            continue;
        }
        MPI_Count bytes = exchange_probe(&exchange, rank);
        taken[i] = malloc((size_t)(bytes > 0 ? bytes : 1));
        exchange_receive(&exchange, rank, taken[i], bytes, MPI_BYTE);
        pieces_add(&pieces, taken[i], bytes, MPI_BYTE);
    }
    int code = exchange_end(&exchange);
    exchange_begin(&exchange, levels, 1);
    exchange.result = code;
    post_pieces(&exchange, root, &pieces, true);
    code = exchange_end(&exchange);
    for (int i = 0; taken && i < levels->members; i++)
        release(levels, taken[i]);
    free(taken);
    pieces_free(&pieces);
    return code;
}

static int gatherv(Levels *levels, const void *send, MPI_Count count, MPI_Datatype type, void *receive, Blocks blocks,
                   MPI_Datatype receive_type, int root)
{
    int own = representative_of(levels, levels->site, root);
    if (levels->rank == root)
        return gatherv_root(levels, send, count, type, receive, blocks, receive_type);
    if (levels->rank == own)
        return gatherv_representative(levels, send, count, type, root);
    Exchange exchange;
    exchange_begin(&exchange, levels, 1);
    exchange_send(&exchange, own, send, count, type);
    return exchange_end(&exchange);
}

/* A message to a representative begins with the number of bytes for each rank of its site. */
static void send_site(Exchange *exchange, int site, int64_t *header, const void *send, Blocks blocks,
                      MPI_Datatype type)
{
    const Levels *levels = exchange->levels;
    Pieces pieces;
    if (pieces_room(&pieces, members_of(levels, site) + 1) != MPI_SUCCESS)
        exchange->result = MPI_ERR_NO_MEM;
    if (exchange->result == MPI_SUCCESS) {
        pieces_add(&pieces, header, members_of(levels, site) * (MPI_Count)sizeof *header, MPI_BYTE);
        for (int i = 0; i < members_of(levels, site); i++) {
            size_t bytes = 0;
            data_bytes(block_count(blocks, levels->ranks[levels->first[site] + i]), type, &bytes);
            header[i] = (int64_t)bytes;
        }
        add_site(&pieces, levels, site, send, blocks, type);
        post_pieces(exchange, representative_of(levels, site, NO_ROOT), &pieces, true);
    }
    pieces_free(&pieces);
}

static int scatterv_root(Levels *levels, const void *send, Blocks blocks, MPI_Datatype type, void *receive,
                         MPI_Count count, MPI_Datatype receive_type)
{
    MPI_Aint extent = extent_of(type);
    int64_t *headers = malloc((size_t)levels->size * sizeof *headers);
    Exchange exchange;
    exchange_begin(&exchange, levels, levels->members + levels->sites + 1);
    if (!headers)
        exchange.result = MPI_ERR_NO_MEM;
    for (int site = 0; site < levels->sites; site++)
        if (site != levels->site)
            send_site(&exchange, site, headers + levels->first[site], send, blocks, type);
    if (receive != MPI_IN_PLACE)
        exchange_receive(&exchange, levels->rank, receive, count, receive_type);
    for (int i = 0; i < levels->members; i++) {
        int rank = levels->ranks[levels->first[levels->site] + i];
        if (rank != levels->rank || receive != MPI_IN_PLACE)
            exchange_send(&exchange, rank, (const char *)send + block_start(blocks, rank) * extent,
                          block_count(blocks, rank), type);
    }
    int code = exchange_end(&exchange);
    release(levels, headers);
    return code;
}

static int scatterv_representative(Levels *levels, void *receive, MPI_Count count, MPI_Datatype type, int root)
{
    Exchange exchange;
    exchange_begin(&exchange, levels, levels->members + 2);
    exchange.ours = true;
    MPI_Count bytes = exchange_probe(&exchange, root);
    char *taken = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (exchange.result == MPI_SUCCESS && !taken)
        exchange.result = MPI_ERR_NO_MEM;
    exchange_receive(&exchange, root, taken, bytes, MPI_BYTE);
    int code = exchange_end(&exchange);
    exchange_begin(&exchange, levels, levels->members + 1);
    exchange.result = code;
    exchange_receive(&exchange, levels->rank, receive, count, type);
    const int64_t *header = (const int64_t *)(void *)taken;
    char *piece = taken + (size_t)levels->members * sizeof *header;
    for (int i = 0; i < levels->members && exchange.result == MPI_SUCCESS; i++) {
        exchange_send(&exchange, levels->ranks[levels->first[levels->site] + i], piece, (MPI_Count)header[i], MPI_BYTE);
        piece += header[i];
    }
    code = exchange_end(&exchange);
    release(levels, taken);
    return code;
}

static int scatterv(Levels *levels, const void *send, Blocks blocks, MPI_Datatype type, void *receive,
                    MPI_Count count, MPI_Datatype receive_type, int root)
{
    int own = representative_of(levels, levels->site, root);
    if (levels->rank == root)
        return scatterv_root(levels, send, blocks, type, receive, count, receive_type);
    if (levels->rank == own)
        return scatterv_representative(levels, receive, count, receive_type, root);
    Exchange exchange;
    exchange_begin(&exchange, levels, 1);
    exchange_receive(&exchange, own, receive, count, receive_type);
    return exchange_end(&exchange);
}

bool two_level_gatherv(const void *send, MPI_Count count, MPI_Datatype type, void *receive, Blocks receive_blocks,
                       MPI_Datatype receive_type, int root, MPI_Comm comm, int *result)
{
    Levels *levels = levels_for(GATHERV, comm, root, 0);
    if (levels)
        *result = two_level_result(
            comm, gatherv(levels, send, count, type, receive, receive_blocks, receive_type, root));
    return levels;
}

bool two_level_scatterv(const void *send, Blocks blocks, MPI_Datatype type, void *receive, MPI_Count receive_count,
                        MPI_Datatype receive_type, int root, MPI_Comm comm, int *result)
{
    Levels *levels = levels_for(SCATTERV, comm, root, 0);
    if (levels)
        *result = two_level_result(
            comm, scatterv(levels, send, blocks, type, receive, receive_count, receive_type, root));
    return levels;
}
