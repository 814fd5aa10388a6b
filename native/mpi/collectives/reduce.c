#include "buffers.h"
#include "exchange.h"
#include "stages.h"

#include <stdlib.h>

/* What the sites made of their ranks' values: in `of[site]`, that of this site in the caller's buffer. */
typedef struct {
    void **of, **bases;
} Parts;

static void parts_free(const Levels *levels, Parts *parts)
{
    for (int site = 0; parts->bases && site < levels->sites; site++)
        free(parts->bases[site]);
    free(parts->bases);
    free(parts->of);
}

static int parts_room(const Levels *levels, Parts *parts, void *own, int count, MPI_Datatype type)
{
    parts->of = calloc((size_t)levels->sites, sizeof *parts->of);
    parts->bases = calloc((size_t)levels->sites, sizeof *parts->bases);
    if (!parts->of || !parts->bases)
        return MPI_ERR_NO_MEM;
    for (int site = 0; site < levels->sites; site++) {
        parts->of[site] = site == levels->site ? own : room_for(count, type, &parts->bases[site]);
        if (!parts->of[site])
            return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

/* A message to itself: it leaves the gaps of a type alone. */
static int copy(Levels *levels, const void *from, void *to, int count, MPI_Datatype type)
{
    Exchange exchange;
    exchange_begin(&exchange, levels, 2);
    exchange_receive(&exchange, levels->rank, to, count, type);
    exchange_send(&exchange, levels->rank, from, count, type);
    return exchange_end(&exchange);
}

/* In the order of the sites, whoever does it: the same bits everywhere, and the order of the ranks where the sites
 * are in theirs. */
static int combine(Levels *levels, const Parts *parts, int count, MPI_Datatype type, MPI_Op op)
{
    int last = levels->sites - 1, code = MPI_SUCCESS;
    for (int site = last - 1; site >= 0 && code == MPI_SUCCESS; site--)
        code = PMPI_Reduce_local(parts->of[site], parts->of[last], count, type, op);
    if (levels->site == last || code != MPI_SUCCESS)
        return code;
    return copy(levels, parts->of[last], parts->of[levels->site], count, type);
}

/* The stage inside the site: its part, at its representative. */
static int reduce_inside(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                         int own)
{
    const void *mine = send == MPI_IN_PLACE && levels->rank != own ? receive : send;
    return stage_reduce(levels, mine, levels->rank == own ? receive : NULL, count, type, op, levels->place[own]);
}

/* Takes the parts of the other sites, gives its own to the representatives that want it, and combines. */
static int exchange_parts(Levels *levels, void *own, int count, MPI_Datatype type, MPI_Op op, bool all)
{
    Parts parts;
    Exchange exchange;
    int code = parts_room(levels, &parts, own, count, type);
    if (code == MPI_SUCCESS) {
        exchange_begin(&exchange, levels, 2 * levels->sites);
        for (int site = 0; site < levels->sites; site++)
            if (site != levels->site)
                exchange_receive(&exchange, representative_of(levels, site, NO_ROOT), parts.of[site], count, type);
        for (int site = 0; all && site < levels->sites; site++)
            if (site != levels->site)
                exchange_send(&exchange, representative_of(levels, site, NO_ROOT), own, count, type);
        code = exchange_end(&exchange);
    }
    if (code == MPI_SUCCESS)
        code = combine(levels, &parts, count, type, op);
    parts_free(levels, &parts);
    return code;
}

/* A representative that is not the root: its part is nobody's buffer. */
static int send_part(Levels *levels, const void *send, int count, MPI_Datatype type, MPI_Op op, int root)
{
    void *base, *part = room_for(count, type, &base);
    if (!part)
        return MPI_ERR_NO_MEM;
    int code = reduce_inside(levels, send, part, count, type, op, levels->rank);
    if (code == MPI_SUCCESS) {
        Exchange exchange;
        exchange_begin(&exchange, levels, 1);
        exchange_send(&exchange, root, part, count, type);
        code = exchange_end(&exchange);
    }
    free(base);
    return code;
}

/* MPICH 4.0 crashes in an MPI_Reduce in place whose root is not rank 0, in groups of some sizes only: a stage must
 * not bring that upon a program that has another size. */
static int reduce_in_place(Levels *levels, void *receive, int count, MPI_Datatype type, MPI_Op op)
{
    void *base, *part = room_for(count, type, &base);
    if (!part)
        return MPI_ERR_NO_MEM;
    int code = reduce_inside(levels, receive, part, count, type, op, levels->rank);
    if (code == MPI_SUCCESS)
        code = copy(levels, part, receive, count, type);
    free(base);
    return code;
}

static int reduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root)
{
    int own = representative_of(levels, levels->site, root);
    if (levels->rank == own && levels->rank != root)
        return send_part(levels, send, count, type, op, root);
    int code = send == MPI_IN_PLACE && levels->place[root]
                   ? reduce_in_place(levels, receive, count, type, op)
                   : reduce_inside(levels, send, receive, count, type, op, own);
    if (levels->rank == root && code == MPI_SUCCESS)
        code = exchange_parts(levels, receive, count, type, op, false);
    return code;
}

static int allreduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op)
{
    int own = representative_of(levels, levels->site, NO_ROOT);
    int code = reduce_inside(levels, send, receive, count, type, op, own);
    if (code == MPI_SUCCESS && levels->rank == own)
        code = exchange_parts(levels, receive, count, type, op, true);
    int inside = code == MPI_SUCCESS ? stage_bcast(levels, receive, count, type, levels->place[own]) : code;
    return code != MPI_SUCCESS ? code : inside;
}

/* An operation that does not commute is done in the order of the ranks, which only sites in theirs can keep. */
static Levels *reducing(TwoLevelCall call, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    size_t bytes;
    int commutes = 0;
    if (op == MPI_OP_NULL || !data_bytes(count, type, &bytes))
        return NULL;
    Levels *levels = levels_for(call, comm, root, bytes);
    if (levels && !levels->in_order && (PMPI_Op_commutative(op, &commutes) != MPI_SUCCESS || !commutes))
        return NULL;
    return levels;
}

bool two_level_reduce(const void *send, void *receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm, int *result)
{
    Levels *levels = reducing(REDUCE, count, type, op, root, comm);
    if (levels)
        *result = two_level_result(comm, reduce(levels, send, receive, (int)count, type, op, root));
    return levels;
}

bool two_level_allreduce(const void *send, void *receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                         int *result)
{
    Levels *levels = reducing(ALLREDUCE, count, type, op, NO_ROOT, comm);
    if (levels)
        *result = two_level_result(comm, allreduce(levels, send, receive, (int)count, type, op));
    return levels;
}
