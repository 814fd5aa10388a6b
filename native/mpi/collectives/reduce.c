#include "segments.h"
#include "stages.h"

#include <stdlib.h>

/* How to run several reductions of one site in a row. Open MPI passes one on while it takes the next.
 * MPICH waits for all ranks in each, so all are begun at once. (With SimGrid, nonblocking reductions use
 * no tree.) */
#if defined OMPI_MAJOR_VERSION || defined SIMULATED
enum { REDUCES_IN_A_STREAM = 1 };
#else
enum { REDUCES_IN_A_STREAM = 0 };
#endif

/* The partial results of the sites. `of[site]` of this site is in the caller's buffer. */
typedef struct {
    void **of, **bases;
} Parts;

static void parts_free(const Levels *levels, Parts *parts)
{
    for (int site = 0; parts->bases && site < levels->sites; site++)
        release(levels, parts->bases[site]);
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

/* Copies by a message to itself, which does not touch the gaps of a type. */
static int copy(Levels *levels, const void *from, void *to, int count, MPI_Datatype type)
{
    Exchange exchange;
    exchange_begin(&exchange, levels, 2);
    exchange_receive(&exchange, levels->rank, to, count, type);
    exchange_send(&exchange, levels->rank, from, count, type);
    return exchange_end(&exchange);
}

/* A reduction in segments: some are reduced inside the site while others cross the WAN. */
typedef struct {
    Levels *levels;
    const void *send;
    void *receive;           /* on a representative: the buffer for its site's partial result */
    int count;
    MPI_Datatype type;
    MPI_Op op;
    int own, segment;        /* representative of this site; number of elements of a segment */
    MPI_Request *inside;     /* the requests of all segments inside the site; NULL if there is only one segment */
} Work;

static int segments_of(const Work *work)
{
    return (work->count - 1) / work->segment + 1;
}

static int length_at(const Work *work, int at)
{
    return segment_length(work->count, work->segment, at);
}

/* Starts the stage inside the site for one segment, which reduces to the representative. */
static int begin_inside(Work *work, int at)
{
    Levels *levels = work->levels;
    bool represents = levels->rank == work->own, in_place = work->send == MPI_IN_PLACE;
    void *receive = represents || in_place ? element_at(work->receive, at, work->type) : NULL;
    const void *send = in_place && !represents ? receive : element_at(work->send, at, work->type);
    int count = length_at(work, at), to = levels->place[work->own];
    if (!represents)
        receive = NULL;
    if (!work->inside)
        return stage_reduce(levels, send, receive, count, work->type, work->op, to);
    return stage_ireduce(levels, send, receive, count, work->type, work->op, to, &work->inside[at / work->segment]);
}

/* Starts the stage for all segments, if several must run at once. */
static int begin_all_inside(Work *work)
{
    int segments = segments_of(work), code = MPI_SUCCESS;
    if (segments == 1 || REDUCES_IN_A_STREAM)
        return code;
    work->inside = malloc((size_t)segments * sizeof *work->inside);
    if (!work->inside)
        return MPI_ERR_NO_MEM;
    for (int segment = 0; segment < segments; segment++)
        work->inside[segment] = MPI_REQUEST_NULL;
    for (int at = 0; at < work->count; at += work->segment) {
        int inside = begin_inside(work, at);
        code = code == MPI_SUCCESS ? inside : code;
    }
    return code;
}

static int end_inside(Work *work, int at)
{
    if (!work->inside && !REDUCES_IN_A_STREAM && segments_of(work) > 1)
        return MPI_ERR_NO_MEM;
    return work->inside ? PMPI_Wait(&work->inside[at / work->segment], MPI_STATUS_IGNORE) : begin_inside(work, at);
}

/* Completes the stages after an error: MPI cannot cancel them, and the other ranks of the site have
 * started them too. */
static void end_all_inside(Work *work)
{
    if (work->inside)
        PMPI_Waitall(segments_of(work), work->inside, MPI_STATUSES_IGNORE);
    free(work->inside);
    work->inside = NULL;
}

static void post_receives(Exchange *exchange, const Work *work, const Parts *parts)
{
    const Levels *levels = work->levels;
    for (int site = 0; site < levels->sites; site++)
        if (site != levels->site)
            post_segments(exchange, representative_of(levels, site, NO_ROOT), false, parts->of[site], work->count,
                          work->type);
}

static void post_sends(Exchange *exchange, const Work *work, int at)
{
    const Levels *levels = work->levels;
    for (int site = 0; site < levels->sites; site++)
        if (site != levels->site)
            exchange_send(exchange, representative_of(levels, site, NO_ROOT),
                          element_at(work->receive, at, work->type), length_at(work, at), work->type);
    exchange->more = true;
}

/* Combines the sites' parts in the order of the sites on every rank that does it. So all get the same
 * bits, and the order is that of the ranks if sites are in rank order. */
static int combine(const Work *work, const Parts *parts, int at)
{
    Levels *levels = work->levels;
    int last = levels->sites - 1, code = MPI_SUCCESS, count = length_at(work, at);
    void *result = element_at(parts->of[last], at, work->type);
    for (int site = last - 1; site >= 0 && code == MPI_SUCCESS; site--)
        code = PMPI_Reduce_local(element_at(parts->of[site], at, work->type), result, count, work->type, work->op);
    if (levels->site == last || code != MPI_SUCCESS)
        return code;
    return copy(levels, result, element_at(work->receive, at, work->type), count, work->type);
}

/* Allocates memory for the other sites' parts and posts the receives for them. */
static int begin_parts(Exchange *exchange, const Work *work, Parts *parts)
{
    int code = parts_room(work->levels, parts, work->receive, work->count, work->type);
    exchange->ours = true;
    if (code == MPI_SUCCESS)
        post_receives(exchange, work, parts);
    return code;
}

/* Combines a segment of all sites once it has arrived and the own one was sent. Received messages are
 * ordered by site, sent ones by segment. */
static int combine_segment(Exchange *exchange, const Work *work, const Parts *parts, int at)
{
    int others = work->levels->sites - 1, segments = segments_of(work), segment = at / work->segment;
    for (int i = 0; i < others; i++) {
        int sent = others * (segments + segment) + i;
        exchange_wait(exchange, i * segments + segment);
        if (sent < exchange->messages)
            exchange_wait(exchange, sent);
    }
    return exchange->result != MPI_SUCCESS ? exchange->result : combine(work, parts, at);
}

/* Allocates memory for the site's part if no buffer of the program can hold it: at a representative that
 * is not the root, and where it must not be in place. (MPICH 4.0 crashes in some group sizes in an
 * MPI_Reduce in place whose root is not rank 0; a stage must not cause this in a program with another
 * size.) */
static int part_room(Work *work, int root, void **base)
{
    Levels *levels = work->levels;
    bool in_place = work->send == MPI_IN_PLACE && levels->place[work->own];
    *base = NULL;
    if (levels->rank != work->own || (levels->rank == root && !in_place))
        return MPI_SUCCESS;
    void *part = room_for(work->count, work->type, base);
    if (!part)
        return MPI_ERR_NO_MEM;
    if (levels->rank == root)
        work->send = work->receive;
    work->receive = part;
    return MPI_SUCCESS;
}

/* Reduces segments while earlier ones cross. After an error the stages inside the site continue, because
 * the other ranks of the site take part in all of them. */
static int reduce_across(Work *work, Exchange *exchange, Parts *parts, int root)
{
    Levels *levels = work->levels;
    int code = begin_all_inside(work);
    for (int at = 0; at < work->count; at += work->segment) {
        int inside = end_inside(work, at);
        code = code == MPI_SUCCESS ? inside : code;
        if (code == MPI_SUCCESS && levels->rank == root && at == 0)
            code = begin_parts(exchange, work, parts);
        if (code == MPI_SUCCESS && levels->rank == work->own && levels->rank != root)
            exchange_send(exchange, root, element_at(work->receive, at, work->type), length_at(work, at), work->type);
        exchange->more = true;
    }
    for (int at = 0; at < work->count && code == MPI_SUCCESS && levels->rank == root; at += work->segment)
        code = combine_segment(exchange, work, parts, at);
    return code;
}

static int reduce(Work *work, int root)
{
    Levels *levels = work->levels;
    Parts parts = {0};
    Exchange exchange;
    void *base, *result = work->receive;
    int code = part_room(work, root, &base);
    if (code != MPI_SUCCESS)
        return code;
    exchange_begin(&exchange, levels, levels->sites);
    code = reduce_across(work, &exchange, &parts, root);
    if (levels->rank == root && base && code == MPI_SUCCESS)
        code = copy(levels, work->receive, result, work->count, work->type);
    end_all_inside(work);
    code = exchange_close(&exchange, code);
    parts_free(levels, &parts);
    release(levels, base);
    return code;
}

/* Like reduce_across, but finished segments also spread inside the site while later ones cross. */
static int allreduce(Work *work)
{
    Levels *levels = work->levels;
    Parts parts = {0};
    Exchange exchange;
    bool represents = levels->rank == work->own;
    exchange_begin(&exchange, levels, 2 * levels->sites);
    int code = begin_all_inside(work);
    for (int at = 0; at < work->count; at += work->segment) {
        int inside = end_inside(work, at);
        code = code == MPI_SUCCESS ? inside : code;
        if (represents && code == MPI_SUCCESS && at == 0)
            code = begin_parts(&exchange, work, &parts);
        if (represents && code == MPI_SUCCESS)
            post_sends(&exchange, work, at);
    }
    for (int at = 0; at < work->count; at += work->segment) {
        if (represents && code == MPI_SUCCESS)
            code = combine_segment(&exchange, work, &parts, at);
        int inside = stage_bcast(levels, element_at(work->receive, at, work->type), length_at(work, at), work->type,
                                 levels->place[work->own]);
        code = code == MPI_SUCCESS ? inside : code;
    }
    end_all_inside(work);
    code = exchange_close(&exchange, code);
    parts_free(levels, &parts);
    return code;
}

static Work work_of(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root)
{
    return (Work){levels, send, receive, count, type, op, representative_of(levels, levels->site, root),
                  segment_of(count, type), NULL};
}

/* The levels for a reduction. An operation that does not commute needs the order of the ranks, which only
 * sites in rank order keep. */
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
    if (levels) {
        Work work = work_of(levels, send, receive, (int)count, type, op, root);
        *result = two_level_result(comm, reduce(&work, root));
    }
    return levels;
}

bool two_level_allreduce(const void *send, void *receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                         int *result)
{
    Levels *levels = reducing(ALLREDUCE, count, type, op, NO_ROOT, comm);
    if (levels) {
        Work work = work_of(levels, send, receive, (int)count, type, op, NO_ROOT);
        *result = two_level_result(comm, allreduce(&work));
    }
    return levels;
}
