/* Does collectives drawn at random twice, as MPI_X and as PMPI_X, and compares every byte of the buffers, gaps and
 * surroundings too. With the library preloaded the first are its own, the second are not. All ranks draw the same.
 *
 *     same_results ROUNDS SEED
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AROUND = 256, COMMUNICATORS = 6, TYPES = 9, PLAIN_TYPES = 3 };

static uint64_t state;
static int world_rank, world_size, wrong, done;

static unsigned draw(unsigned below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ (z >> 31)) % below);
}

/* A type, the bytes from one element to the next, and of how many of `base` it is made. */
typedef struct {
    MPI_Datatype type, base;
    int parts;
    MPI_Aint extent;
} Kind;

static Kind kinds[TYPES];

static Kind kind_of(MPI_Datatype type, MPI_Datatype base, int parts)
{
    MPI_Aint lower, extent;
    MPI_Type_commit(&type);
    MPI_Type_get_extent(type, &lower, &extent);
    return (Kind){type, base, parts, extent};
}

static void make_kinds(void)
{
    MPI_Datatype type, inner;
    kinds[0] = (Kind){MPI_INT, MPI_INT, 1, 4};
    kinds[1] = (Kind){MPI_DOUBLE, MPI_DOUBLE, 1, 8};
    kinds[2] = (Kind){MPI_INT64_T, MPI_INT64_T, 1, 8};
    MPI_Type_contiguous(3, MPI_INT, &type);
    kinds[3] = kind_of(type, MPI_INT, 3);
    MPI_Type_vector(3, 2, 5, MPI_INT, &type); /* gaps inside */
    kinds[4] = kind_of(type, MPI_INT, 6);
    MPI_Type_create_resized(MPI_INT, -8, 24, &type); /* a lower bound below 0, gaps between */
    kinds[5] = kind_of(type, MPI_INT, 1);
    MPI_Type_indexed(2, (int[]){1, 1}, (int[]){1, 0}, MPI_INT, &type); /* no gap, but backwards in memory */
    kinds[6] = kind_of(type, MPI_INT, 2);
    MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 4, &type); /* elements that overlap in extent: 0, 2; 1, 3; ... two only */
    kinds[7] = kind_of(type, MPI_INT, 2);
    MPI_Type_create_hindexed(1, (int[]){2}, (MPI_Aint[]){16}, MPI_INT, &type); /* begins after the buffer */
    kinds[8] = kind_of(type, MPI_INT, 2);
}

/* A buffer of a call, once for each way of doing it. */
typedef struct {
    size_t bytes;
    char *ours, *mpis;
} Pair;

static char *at(char *memory)
{
    return memory + AROUND;
}

/* Small numbers that differ by rank and place; `same` for all ranks where data differ by nothing else. */
static Pair pair_of(size_t elements, const Kind *kind, int salt)
{
    Pair pair = {2 * AROUND + (elements + 2) * (size_t)kind->extent + 64, NULL, NULL};
    pair.ours = malloc(pair.bytes);
    pair.mpis = malloc(pair.bytes);
    if (kind->base == MPI_DOUBLE)
        for (size_t i = 0; i < pair.bytes / sizeof(double); i++)
            ((double *)(void *)pair.ours)[i] = (double)((i * 7 + (size_t)(salt + 1) * 13) % 101);
    else
        for (size_t i = 0; i < pair.bytes / sizeof(int); i++)
            ((int *)(void *)pair.ours)[i] = (int)((i * 7 + (size_t)(salt + 1) * 13) % 101) + 1;
    memcpy(pair.mpis, pair.ours, pair.bytes / 8 * 8);
    return pair;
}

static void compare(Pair pair, const char *call, const Kind *kind, int count, int root, MPI_Comm comm)
{
    int size;
    MPI_Comm_size(comm, &size);
    done++;
    if (memcmp(pair.ours, pair.mpis, pair.bytes / 8 * 8)) {
        if (wrong++ < 5)
            fprintf(stderr, "rank %d: %s of %d elements of kind %d, root %d of %d, differs\n", world_rank, call,
                    count, (int)(kind - kinds), root, size);
    }
    free(pair.ours);
    free(pair.mpis);
}

/* 2 x 2 matrices: the order matters. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    uint32_t *a = in, *b = inout;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        uint32_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                         a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

/* On ints 24 bytes apart. */
static void add_spaced(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        *(int *)(void *)((char *)inout + 24 * i) += *(int *)(void *)((char *)in + 24 * i);
}

static MPI_Op matrix_op, spaced_op;
static Kind matrix;

typedef struct {
    MPI_Comm comm;
    int rank, size, root, count;
    const Kind *kind;
    bool in_place, mixed;
} Draw;

/* The same data described by another type, at some ranks. */
static MPI_Datatype type_at(const Draw *d, int *count)
{
    bool other = d->mixed && d->rank % 2 && d->kind->extent == d->kind->parts * 4 && d->kind - kinds != 6;
    *count = d->count * (other ? d->kind->parts : 1);
    return other ? d->kind->base : d->kind->type;
}

static void bcast(const Draw *d)
{
    int count;
    MPI_Datatype type = type_at(d, &count);
    Pair data = pair_of((size_t)d->count, d->kind, d->rank);
    MPI_Bcast(at(data.ours), count, type, d->root, d->comm);
    PMPI_Bcast(at(data.mpis), count, type, d->root, d->comm);
    compare(data, "bcast", d->kind, d->count, d->root, d->comm);
}

static MPI_Op reduction(const Draw *d, const Kind **kind)
{
    switch (draw(5)) {
    case 0:
        *kind = &matrix;
        return matrix_op;
    case 1:
        *kind = &kinds[5];
        return spaced_op;
    default:
        *kind = &kinds[d->count % PLAIN_TYPES];
        return draw(2) ? MPI_SUM : MPI_MAX;
    }
}

static void reduce(const Draw *d, bool all)
{
    const Kind *kind;
    MPI_Op op = reduction(d, &kind);
    Pair send = pair_of((size_t)d->count, kind, d->rank), receive = pair_of((size_t)d->count, kind, d->rank + 50);
    /* MPICH 4.0 itself crashes in a longer reduction in place whose root is not rank 0. */
    bool place = d->in_place && (all || (d->rank == d->root && (d->root == 0 || d->count <= 17)));
    const void *ours = place ? MPI_IN_PLACE : at(send.ours), *mpis = place ? MPI_IN_PLACE : at(send.mpis);
    if (all) {
        MPI_Allreduce(ours, at(receive.ours), d->count, kind->type, op, d->comm);
        PMPI_Allreduce(mpis, at(receive.mpis), d->count, kind->type, op, d->comm);
    } else {
        bool significant = d->rank == d->root;
        MPI_Reduce(ours, significant ? at(receive.ours) : NULL, d->count, kind->type, op, d->root, d->comm);
        PMPI_Reduce(mpis, significant ? at(receive.mpis) : NULL, d->count, kind->type, op, d->root, d->comm);
    }
    compare(send, "what a reduction reads", kind, d->count, d->root, d->comm);
    compare(receive, all ? "allreduce" : "reduce", kind, d->count, d->root, d->comm);
}

static void gather(const Draw *d, bool all)
{
    int count;
    MPI_Datatype type = type_at(d, &count);
    bool roots = all || d->rank == d->root, place = d->in_place && roots;
    Pair send = pair_of((size_t)d->count, d->kind, d->rank);
    Pair receive = pair_of((size_t)(d->count * d->size), d->kind, d->rank + 50);
    const void *ours = place ? MPI_IN_PLACE : at(send.ours), *mpis = place ? MPI_IN_PLACE : at(send.mpis);
    if (all) {
        MPI_Allgather(ours, count, type, at(receive.ours), d->count, d->kind->type, d->comm);
        PMPI_Allgather(mpis, count, type, at(receive.mpis), d->count, d->kind->type, d->comm);
    } else {
        MPI_Datatype their = roots ? d->kind->type : MPI_DATATYPE_NULL;
        MPI_Gather(ours, count, type, roots ? at(receive.ours) : NULL, roots ? d->count : -1, their, d->root, d->comm);
        PMPI_Gather(mpis, count, type, roots ? at(receive.mpis) : NULL, roots ? d->count : -1, their, d->root, d->comm);
    }
    compare(send, "what a gather reads", d->kind, d->count, d->root, d->comm);
    compare(receive, all ? "allgather" : "gather", d->kind, d->count, d->root, d->comm);
}

static void scatter(const Draw *d)
{
    int count;
    MPI_Datatype type = type_at(d, &count);
    bool roots = d->rank == d->root, place = d->in_place && roots;
    Pair send = pair_of((size_t)(d->count * d->size), d->kind, d->rank);
    Pair receive = pair_of((size_t)d->count, d->kind, d->rank + 50);
    MPI_Datatype their = roots ? d->kind->type : MPI_DATATYPE_NULL;
    MPI_Scatter(roots ? at(send.ours) : NULL, roots ? d->count : -1, their, place ? MPI_IN_PLACE : at(receive.ours),
                count, type, d->root, d->comm);
    PMPI_Scatter(roots ? at(send.mpis) : NULL, roots ? d->count : -1, their, place ? MPI_IN_PLACE : at(receive.mpis),
                 count, type, d->root, d->comm);
    compare(send, "what a scatter reads", d->kind, d->count, d->root, d->comm);
    compare(receive, "scatter", d->kind, d->count, d->root, d->comm);
}

static void alltoall(const Draw *d)
{
    int count;
    MPI_Datatype type = type_at(d, &count);
    Pair send = pair_of((size_t)(d->count * d->size), d->kind, d->rank);
    Pair receive = pair_of((size_t)(d->count * d->size), d->kind, d->rank + 50);
    MPI_Alltoall(d->in_place ? MPI_IN_PLACE : at(send.ours), count, type, at(receive.ours), d->count, d->kind->type,
                 d->comm);
    PMPI_Alltoall(d->in_place ? MPI_IN_PLACE : at(send.mpis), count, type, at(receive.mpis), d->count, d->kind->type,
                  d->comm);
    compare(send, "what an alltoall reads", d->kind, d->count, d->root, d->comm);
    compare(receive, "alltoall", d->kind, d->count, d->root, d->comm);
}

/* Unequal counts, some 0, with gaps between blocks and blocks in another order than the ranks. */
static void spread(const Draw *d, int *counts, int *starts, int *room)
{
    *room = 0;
    for (int i = 0; i < d->size; i++) {
        int rank = d->size - 1 - i;
        counts[rank] = draw(3) ? (int)draw((unsigned)d->count + 1) : 0;
        starts[rank] = *room;
        *room += counts[rank] + (int)draw(3);
    }
}

static void gatherv(const Draw *d, bool all)
{
    int counts[64], starts[64], room;
    spread(d, counts, starts, &room);
    bool roots = all || d->rank == d->root, place = d->in_place && roots;
    Pair send = pair_of((size_t)d->count, d->kind, d->rank), receive = pair_of((size_t)room, d->kind, d->rank + 50);
    const void *ours = place ? MPI_IN_PLACE : at(send.ours), *mpis = place ? MPI_IN_PLACE : at(send.mpis);
    MPI_Datatype type = d->kind->type;
    if (all) {
        MPI_Allgatherv(ours, counts[d->rank], type, at(receive.ours), counts, starts, type, d->comm);
        PMPI_Allgatherv(mpis, counts[d->rank], type, at(receive.mpis), counts, starts, type, d->comm);
    } else {
        MPI_Gatherv(ours, counts[d->rank], type, at(receive.ours), roots ? counts : NULL, roots ? starts : NULL, type,
                    d->root, d->comm);
        PMPI_Gatherv(mpis, counts[d->rank], type, at(receive.mpis), roots ? counts : NULL, roots ? starts : NULL, type,
                     d->root, d->comm);
    }
    compare(send, "what a gatherv reads", d->kind, d->count, d->root, d->comm);
    compare(receive, all ? "allgatherv" : "gatherv", d->kind, d->count, d->root, d->comm);
}

static void scatterv(const Draw *d)
{
    int counts[64], starts[64], room;
    spread(d, counts, starts, &room);
    bool roots = d->rank == d->root, place = d->in_place && roots;
    Pair send = pair_of((size_t)room, d->kind, d->rank), receive = pair_of((size_t)d->count, d->kind, d->rank + 50);
    MPI_Datatype type = d->kind->type;
    MPI_Scatterv(at(send.ours), roots ? counts : NULL, roots ? starts : NULL, type,
                 place ? MPI_IN_PLACE : at(receive.ours), counts[d->rank], type, d->root, d->comm);
    PMPI_Scatterv(at(send.mpis), roots ? counts : NULL, roots ? starts : NULL, type,
                  place ? MPI_IN_PLACE : at(receive.mpis), counts[d->rank], type, d->root, d->comm);
    compare(send, "what a scatterv reads", d->kind, d->count, d->root, d->comm);
    compare(receive, "scatterv", d->kind, d->count, d->root, d->comm);
}

/* Real sums depend on the order; still every rank must have the same bits. */
static void same_bits(const Draw *d)
{
    double value = 1.0 / (d->rank * 7 + d->count + 3), sum;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, d->comm);
    int64_t bits, least, most;
    memcpy(&bits, &sum, sizeof bits);
    PMPI_Allreduce(&bits, &least, 1, MPI_INT64_T, MPI_MIN, d->comm);
    PMPI_Allreduce(&bits, &most, 1, MPI_INT64_T, MPI_MAX, d->comm);
    done++;
    if (least != most && wrong++ < 5)
        fprintf(stderr, "rank %d: allreduce of %d ranks has other bits elsewhere\n", world_rank, d->size);
}

/* No rank leaves a barrier before the last has come: one rank is late by a message that another sends it first. */
static void barrier(const Draw *d)
{
    static int entered;
    int all;
    entered++;
    MPI_Barrier(d->comm);
    PMPI_Allreduce(&entered, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    done++;
    if (all != entered)
        wrong++;
}

static void once(MPI_Comm comm)
{
    static const int COUNTS[] = {0, 1, 2, 3, 17, 100, 1000, 5000};
    Draw d = {.comm = comm};
    MPI_Comm_rank(comm, &d.rank);
    MPI_Comm_size(comm, &d.size);
    unsigned call = draw(12), root = draw(5040);
    d.count = COUNTS[draw(draw(4) ? 5 : 8)];
    d.kind = &kinds[draw(TYPES)];
    if (d.kind == &kinds[7])
        d.count = d.count < 2 ? d.count : 2, d.kind = call > 3 && call != 11 ? &kinds[4] : d.kind;
    d.root = (int)(root % (unsigned)d.size);
    d.in_place = draw(3) == 0;
    d.mixed = draw(2) && d.count <= 17;
    switch (call) {
    case 0: bcast(&d); break;
    case 1: reduce(&d, false); break;
    case 2: reduce(&d, true); break;
    case 3: same_bits(&d); break;
    case 4: gather(&d, false); break;
    case 5: gather(&d, true); break;
    case 6: scatter(&d); break;
    case 7: alltoall(&d); break;
    case 8: gatherv(&d, false); break;
    case 9: gatherv(&d, true); break;
    case 10: scatterv(&d); break;
    default: barrier(&d);
    }
}

static void make(MPI_Comm *comms)
{
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[2]); /* backwards */
    for (int i = 3; i < COMMUNICATORS; i++) {
        unsigned parts = 1 + draw(3), mine = 0, key = 0;
        for (int rank = 0; rank < world_size; rank++) {
            unsigned part = draw(parts), place = draw(1000);
            if (rank == world_rank)
                mine = part, key = place;
        }
        MPI_Comm_split(MPI_COMM_WORLD, (int)mine, (int)key, &comms[i]);
    }
}

/* Between two groups: they stay as MPI does them. */
static void between(void)
{
    MPI_Comm half, inter;
    int first = world_rank % 2, sum = 0, one = 1, remote;
    MPI_Comm_split(MPI_COMM_WORLD, first, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - first, 7, &inter);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Barrier(inter);
    int root = first ? 0 : world_rank ? MPI_PROC_NULL : MPI_ROOT, data = world_rank ? 0 : 42;
    MPI_Bcast(&data, 1, MPI_INT, root, inter);
    done++;
    if (sum != remote || (first && data != 42))
        wrong++;
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    make_kinds();
    MPI_Datatype type;
    MPI_Type_contiguous(4, MPI_UINT32_T, &type);
    matrix = kind_of(type, MPI_UINT32_T, 4);
    MPI_Op_create(multiply, 0, &matrix_op);
    MPI_Op_create(add_spaced, 1, &spaced_op);
    MPI_Comm comms[COMMUNICATORS];
    for (int round = 0; round < rounds; round++) {
        state = seed * 1000003 + (uint64_t)round; /* communicators differ in size, and so in what they draw */
        if (round % 50 == 0)
            make(comms);
        once(comms[draw(COMMUNICATORS)]);
        if (round % 50 == 49 || round == rounds - 1)
            for (int i = 1; i < COMMUNICATORS; i++)
                MPI_Comm_free(&comms[i]);
    }
    if (world_size > 1)
        between();
    int all[2], mine[2] = {wrong, done};
    PMPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (world_rank == 0)
        printf("compared %d, wrong %d\n", all[1], all[0]);
    MPI_Finalize();
    return wrong != 0;
}
