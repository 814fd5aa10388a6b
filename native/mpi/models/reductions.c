/* Models of reductions: recursive doubling and halving. Ranks beyond the largest power of two first send
 * their data to a partner. With a root, ranks are relative to it. */
#include "model.h"

enum { LONG_REDUCE = 2048, LONG_REDUCE_SCATTER = 524288 };

typedef struct {
    const Model *model;
    int root, me, power, extra;    /* `me` is relative to the root; the largest power of two, and the number of ranks
                                    * beyond it */
} Folded;

static Folded fold(const Model *model, int root)
{
    int size = model->of->size, power = 1;
    while (2 * power <= size)
        power *= 2;
    return (Folded){model, root, (model->of->rank - root + size) % size, power, size - power};
}

static int rank_of(const Folded *folded, int relative)
{
    return (relative + folded->root) % folded->model->of->size;
}

/* The rank of the i-th one that stays after folding: of the pairs at the front, the even rank. */
static int staying(const Folded *folded, int index)
{
    return rank_of(folded, index < folded->extra ? 2 * index : index + folded->extra);
}

/* Folds the ranks to a power of two. Returns this rank's index among those that stay; -1 if it has sent
 * its data away. */
static int fold_in(const Folded *folded, uint64_t bytes)
{
    if (folded->me >= 2 * folded->extra)
        return folded->me - folded->extra;
    if (folded->me % 2) {
        model_send(folded->model, rank_of(folded, folded->me - 1), bytes);
        return -1;
    }
    model_receive(folded->model, rank_of(folded, folded->me + 1));
    return folded->me / 2;
}

static void fold_out(const Folded *folded, uint64_t bytes)
{
    if (folded->me >= 2 * folded->extra)
        return;
    if (folded->me % 2)
        model_receive(folded->model, rank_of(folded, folded->me - 1));
    else
        model_send(folded->model, rank_of(folded, folded->me + 1), bytes);
}

static void halving(const Folded *folded, int index, uint64_t bytes)
{
    for (int bit = 1; bit < folded->power; bit <<= 1)
        model_exchange(folded->model, staying(folded, index ^ bit), bytes / (2 * (uint64_t)bit));
}

void model_allreduce(const Model *model, uint64_t bytes)
{
    Folded folded = fold(model, 0);
    if (!bytes || model->of->size == 1)
        return;
    int index = fold_in(&folded, bytes);
    if (index >= 0 && bytes <= LONG_REDUCE) {
        for (int bit = 1; bit < folded.power; bit <<= 1)
            model_exchange(model, staying(&folded, index ^ bit), bytes);
    } else if (index >= 0) {
        halving(&folded, index, bytes);
        for (int bit = folded.power >> 1; bit; bit >>= 1)
            model_exchange(model, staying(&folded, index ^ bit), bytes / (2 * (uint64_t)bit));
    }
    fold_out(&folded, bytes);
}

/* A short reduction is a gather in which the collected data stay as long as one part. */
static void binomial(const Folded *folded, uint64_t bytes)
{
    int size = folded->model->of->size;
    for (int bit = 1; bit < size; bit <<= 1) {
        if (folded->me & bit) {
            model_send(folded->model, rank_of(folded, folded->me - bit), bytes);
            return;
        }
        if (folded->me + bit < size)
            model_receive(folded->model, rank_of(folded, folded->me + bit));
    }
}

void model_reduce(const Model *model, int root, uint64_t bytes)
{
    Folded folded = fold(model, root);
    if (!bytes || model->of->size == 1)
        return;
    if (bytes <= LONG_REDUCE) {
        binomial(&folded, bytes);
        return;
    }
    int index = fold_in(&folded, bytes);
    if (index < 0)
        return;
    halving(&folded, index, bytes);
    for (int bit = folded.power >> 1; bit; bit >>= 1) {
        if (index & bit) {
            model_send(model, staying(&folded, index ^ bit), bytes / (2 * (uint64_t)bit));
            return;
        }
        model_receive(model, staying(&folded, index ^ bit));
    }
}

void model_reduce_scatter(const Model *model, uint64_t total)
{
    Folded folded = fold(model, 0);
    uint64_t part = total / (uint64_t)model->of->size;
    if (!total || model->of->size == 1)
        return;
    if (total >= LONG_REDUCE_SCATTER) {
        model_alltoall(model, part);
        return;
    }
    int index = fold_in(&folded, total);
    for (int bit = folded.power >> 1, half = 1; index >= 0 && bit; bit >>= 1, half++)
        model_exchange(model, staying(&folded, index ^ bit), total >> half);
    fold_out(&folded, part);
}

void model_scan(const Model *model, uint64_t bytes)
{
    for (int bit = 1; bytes && bit < model->of->size; bit <<= 1)
        if ((model->of->rank ^ bit) < model->of->size)
            model_exchange(model, model->of->rank ^ bit, bytes);
}
