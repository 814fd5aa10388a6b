#include "rank.h"

#include <stdlib.h>

#include "driver.h"
#include "place.h"

/* Slurm's rank of a node has the number of a unit, such as a leaf, above this bit: a step on some of a job's nodes starts
 * in a unit of its own if it can. */
enum { UNIT_SHIFT = 16, MOST_NODES = 1 << UNIT_SHIFT };

typedef struct {
    uint32_t number;   /* the machine's number of the node */
    uint32_t position; /* among the job's nodes in Slurm's order */
    uint32_t block;
    uint32_t first; /* the lowest number in its block */
} Ranked;

static int compared(uint32_t left, uint32_t right)
{
    return (left > right) - (left < right);
}

static int by_block(const void *one, const void *other)
{
    const Ranked *left = one, *right = other;
    int blocks = compared(left->block, right->block);
    return blocks ? blocks : compared(left->number, right->number);
}

static int by_first(const void *one, const void *other)
{
    const Ranked *left = one, *right = other;
    int blocks = compared(left->first, right->first);
    return blocks ? blocks : compared(left->number, right->number);
}

/* Sorts nodes so that those of a block, of a leaf, of a pod and so on are in a row: the machine numbers them so, except in
 * domains that span leaves. Then each is entered once, and no order has fewer hops between neighbours. */
static void sort(Ranked *nodes, uint32_t count)
{
    qsort(nodes, count, sizeof *nodes, by_block);
    for (uint32_t index = 0; index < count; index++) {
        bool is_first = !index || nodes[index - 1].block != nodes[index].block;
        nodes[index].first = is_first ? nodes[index].number : nodes[index - 1].first;
    }
    qsort(nodes, count, sizeof *nodes, by_first);
}

static void set_ranks(const Ranked *nodes, uint32_t count, uint32_t *ranks)
{
    uint32_t unit = 0, within = 0;
    for (uint32_t index = 0; index < count; index++) {
        bool is_first = !index || nodes[index - 1].block != nodes[index].block;
        unit += is_first;
        within = is_first ? 0 : within + 1;
        ranks[nodes[index].position] = unit << UNIT_SHIFT | within;
    }
}

bool rank_nodes(bitstr_t *nodes, uint32_t **ranks, uint32_t *count)
{
    if (!place_was_by_policy() || !driver.is_active || !driver_map_nodes() || !nodes ||
        bit_overlap_any(nodes, driver.unknown))
        return false;
    uint32_t found = (uint32_t)bit_set_count(nodes), position = 0;
    Ranked *all = found && found < MOST_NODES ? malloc(found * sizeof *all) : NULL;
    if (!all)
        return false;
    for (bitoff_t node = bit_ffs(nodes); node >= 0; node = bit_ffs_from_bit(nodes, node + 1), position++) {
        uint32_t number = driver.machine_node[node];
        all[position] = (Ranked){number, position, driver.engine.machine_block(driver.machine, number), 0};
    }
    sort(all, found);
    *ranks = xcalloc(found, sizeof **ranks);
    *count = found;
    set_ranks(all, found, *ranks);
    free(all);
    return true;
}
