#include "segments.h"

#include <stdlib.h>

#include "driver.h"

typedef struct {
    list_t *hosts; /* the host list of each segment */
} Stored;

typedef struct {
    uint32_t block;
    uint32_t node; /* Slurm's number */
} Placed;

static int by_block(const void *one, const void *other)
{
    const Placed *left = one, *right = other;
    if (left->block != right->block)
        return left->block > right->block ? 1 : -1;
    return (left->node > right->node) - (left->node < right->node);
}

static void add(list_t *segments, const Placed *nodes, uint32_t size)
{
    bitstr_t *map = bit_alloc(node_record_count);
    for (uint32_t index = 0; index < size; index++)
        bit_set(map, nodes[index].node);
    list_append(segments, bitmap2node_name(map));
    FREE_NULL_BITMAP(map);
}

/* Each segment lies in one block, so the nodes of a block are whole segments. Returns NULL if they are not. */
static list_t *divided(const Placed *nodes, uint32_t count, uint32_t size)
{
    list_t *segments = list_create(xfree_ptr);
    for (uint32_t index = 0; index < count; index += size) {
        if (nodes[index].block != nodes[index + size - 1].block) {
            FREE_NULL_LIST(segments);
            return NULL;
        }
        add(segments, &nodes[index], size);
    }
    return segments;
}

void segments_store(job_record_t *job, bitstr_t *nodes, uint32_t size)
{
    if (!size || !segments_are_stored_by(stock_now))
        return;
    uint32_t count = (uint32_t)bit_set_count(nodes), index = 0;
    if (!count || count % size || !xstrstr(job->network, "unique-channel-per-segment"))
        return;
    Placed *all = malloc(count * sizeof *all);
    for (bitoff_t node = bit_ffs(nodes); all && node >= 0; node = bit_ffs_from_bit(nodes, node + 1))
        all[index++] = (Placed){driver.engine.machine_block(driver.machine, driver.machine_node[node]), (uint32_t)node};
    if (all)
        qsort(all, count, sizeof *all, by_block);
    list_t *segments = all ? divided(all, count, size) : NULL;
    free(all);
    if (!segments)
        return;
    Stored *stored = xmalloc(sizeof *stored);
    stored->hosts = segments;
    FORGET_JOBINFO(job);
    SET_JOBINFO(job, stock_now->plugin_id, stored);
}

bool segments_are_stored_by(const Stock *with)
{
    return with->plugin_id != TOPOLOGY_PLUGIN_BLOCK;
}

list_t *segments_of(void *stored)
{
    return stored ? ((Stored *)stored)->hosts : NULL;
}

void segments_free(void *stored)
{
    if (!stored)
        return;
    FREE_NULL_LIST(((Stored *)stored)->hosts);
    xfree(stored);
}
