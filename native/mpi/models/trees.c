/* Models from one rank to all and back: binomial trees over ranks relative to the root. */
#include "model.h"

enum { LONG_BCAST = 12288, LONG_BCAST_RANKS = 8 };

static int relative(const Model *model, int root)
{
    return (model->of->rank - root + model->of->size) % model->of->size;
}

static int absolute(const Model *model, int relative, int root)
{
    return (relative + root) % model->of->size;
}

/* The bit of the edge to the parent: the lowest one that is set; for the root, one above all. */
static int own_bit(int relative, int size)
{
    int bit = 1;
    while (bit < size && !(relative & bit))
        bit <<= 1;
    return bit;
}

/* The number of ranks in the subtree of the child reached over `bit`. */
static int subtree(int relative, int bit, int size)
{
    return relative + bit > size ? size - relative : bit;
}

void model_gather(const Model *model, int root, uint64_t bytes)
{
    int size = model->of->size, me = relative(model, root), own = own_bit(me, size);
    if (!bytes)
        return;
    for (int bit = 1; bit < own; bit <<= 1)
        if (me + bit < size)
            model_receive(model, absolute(model, me + bit, root));
    if (me)
        model_send(model, absolute(model, me - own, root), bytes * (uint64_t)subtree(me, own, size));
}

void model_scatter(const Model *model, int root, uint64_t bytes)
{
    int size = model->of->size, me = relative(model, root), own = own_bit(me, size);
    if (!bytes)
        return;
    if (me)
        model_receive(model, absolute(model, me - own, root));
    for (int bit = own >> 1; bit; bit >>= 1)
        if (me + bit < size)
            model_send(model, absolute(model, me + bit, root), bytes * (uint64_t)subtree(me + bit, bit, size));
}

/* The bytes in the blocks `from` up to `to` of a buffer divided into blocks. */
static uint64_t blocks(uint64_t bytes, uint64_t block, int from, int to)
{
    uint64_t begin = block * (uint64_t)from, end = block * (uint64_t)to;
    end = end < bytes ? end : bytes;
    return begin < end ? end - begin : 0;
}

/* A long broadcast: a binomial scatter, and then every rank's block travels round a ring. */
static void scatter_and_ring(const Model *model, int root, uint64_t bytes)
{
    int size = model->of->size, me = relative(model, root), own = own_bit(me, size);
    uint64_t block = (bytes + (uint64_t)size - 1) / (uint64_t)size;
    if (me && blocks(bytes, block, me, me + own))
        model_receive(model, absolute(model, me - own, root));
    for (int bit = own >> 1; bit; bit >>= 1) {
        uint64_t part = blocks(bytes, block, me + bit, me + 2 * bit);
        if (me + bit < size && part)
            model_send(model, absolute(model, me + bit, root), part);
    }
    for (int step = 0; step < size - 1; step++) {
        int given = (me - step + size) % size;
        model_send(model, absolute(model, me + 1, root), blocks(bytes, block, given, given + 1));
        model_receive(model, absolute(model, me - 1 + size, root));
    }
}

void model_bcast(const Model *model, int root, uint64_t bytes)
{
    int size = model->of->size, me = relative(model, root), own = own_bit(me, size);
    if (!bytes)
        return;
    if (bytes >= LONG_BCAST && size >= LONG_BCAST_RANKS) {
        scatter_and_ring(model, root, bytes);
        return;
    }
    if (me)
        model_receive(model, absolute(model, me - own, root));
    for (int bit = own >> 1; bit; bit >>= 1)
        if (me + bit < size)
            model_send(model, absolute(model, me + bit, root), bytes);
}

/* Only the root knows all parts, so each is sent directly. */
void model_gatherv(const Model *model, int root, uint64_t bytes, Part *part, const void *parts)
{
    if (model->of->rank != root) {
        if (bytes)
            model_send(model, root, bytes);
        return;
    }
    for (int rank = 0; rank < model->of->size; rank++)
        if (rank != root && part(parts, rank))
            model_receive(model, rank);
}

void model_scatterv(const Model *model, int root, uint64_t bytes, Part *part, const void *parts)
{
    if (model->of->rank != root) {
        if (bytes)
            model_receive(model, root);
        return;
    }
    for (int rank = 0; rank < model->of->size; rank++)
        if (rank != root && part(parts, rank))
            model_send(model, rank, part(parts, rank));
}
