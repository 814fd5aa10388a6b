#include "stock.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

const Stock *stock_now;
uint64_t stock_time;

/* Copies of the records and free cores of some nodes, in ascending order: the stock plugin may change them. The copies
 * share one buffer, so a call with many nodes needs few allocations. */
typedef struct {
    char *bytes;
    size_t used, room;
    Kept_Node *nodes;
    size_t nodes_room;
} Store;

/* Copies bytes into the store, aligned to eight. Returns their position, or NO_COPY. */
enum { NO_COPY = 0 };
static size_t stored(Store *store, const void *from, size_t bytes)
{
    size_t at = store->used ? store->used : 8, end = at + (bytes + 7) / 8 * 8;
    if (end > store->room) {
        size_t room = 2 * end;
        char *more = realloc(store->bytes, room);
        if (!more)
            return NO_COPY;
        store->bytes = more;
        store->room = room;
    }
    memcpy(store->bytes + at, from, bytes);
    store->used = end;
    return at;
}

static Kept_Node keep(Store *store, avail_res_t *record, const bitstr_t *free_cores)
{
    Kept_Node kept = {.record = record};
    if (free_cores) {
        kept.free_bytes = (2 + map_words((bitstr_t *)free_cores)) * sizeof *free_cores;
        kept.free_cores = stored(store, free_cores, kept.free_bytes);
    }
    if (record) {
        kept.before = *record;
        size_t bytes = record->sock_cnt * sizeof *record->avail_cores_per_sock;
        if (record->avail_cores_per_sock && bytes)
            kept.cores = stored(store, record->avail_cores_per_sock, bytes);
    }
    return kept;
}

static void put_back(const Store *store, const Kept_Node *kept, bitstr_t **free_cores)
{
    avail_res_t *record = kept->record;
    if (record) {
        /* The stock plugin may have replaced this array and freed the former one. */
        uint16_t *cores = record->avail_cores_per_sock;
        size_t bytes = kept->before.sock_cnt * sizeof *cores;
        *record = kept->before;
        record->avail_cores_per_sock = cores;
        if (cores && kept->cores && xsize(cores) >= bytes)
            memcpy(cores, store->bytes + kept->cores, bytes);
    }
    if (!kept->free_cores)
        return;
    const bitstr_t *before = (const bitstr_t *)(store->bytes + kept->free_cores);
    if (!*free_cores || bit_size(*free_cores) != bit_size((bitstr_t *)before)) {
        FREE_NULL_BITMAP(*free_cores);
        *free_cores = bit_alloc(bit_size((bitstr_t *)before));
    }
    memcpy(*free_cores, before, kept->free_bytes);
}

static bool keep_all(Store *store, const topology_eval_t *asked, bitstr_t *nodes)
{
    size_t count = (size_t)bit_set_count(nodes), index = 0;
    if (count > store->nodes_room) {
        Kept_Node *more = realloc(store->nodes, 2 * count * sizeof *more);
        if (!more)
            return false;
        store->nodes = more;
        store->nodes_room = 2 * count;
    }
    store->used = 0;
    for (bitoff_t node = bit_ffs(nodes); node >= 0; node = bit_ffs_from_bit(nodes, node + 1))
        store->nodes[index++] = keep(store, asked->avail_res_array[node], asked->avail_core[node]);
    return true;
}

static void put_all_back(const Store *store, topology_eval_t *asked, bitstr_t *nodes)
{
    size_t index = 0;
    for (bitoff_t node = bit_ffs(nodes); node >= 0; node = bit_ffs_from_bit(nodes, node + 1))
        put_back(store, &store->nodes[index++], &asked->avail_core[node]);
}

static int lighter(const void *one, const void *other)
{
    bitoff_t left = *(const bitoff_t *)one, right = *(const bitoff_t *)other;
    uint64_t light = node_record_table_ptr[left]->sched_weight, heavy = node_record_table_ptr[right]->sched_weight;
    return light != heavy ? (light > heavy) - (light < heavy) : (left > right) - (left < right);
}

/* Chooses a node as Slurm does for a job of one node if its topology plugin allows that: the first, by weight, on which
 * the job can run, in the topology or not. */
static int choose_one(topology_eval_t *asked)
{
    size_t count = (size_t)bit_set_count(asked->node_map), index = 0;
    bitoff_t *nodes = calloc(count + 1, sizeof *nodes);
    for (bitoff_t node = bit_ffs(asked->node_map); nodes && node >= 0; node = bit_ffs_from_bit(asked->node_map, node + 1))
        nodes[index++] = node;
    if (nodes)
        qsort(nodes, count, sizeof *nodes, lighter);
    int code = SLURM_ERROR;
    asked->min_nodes = 1;
    for (index = 0; nodes && index < count && code != SLURM_SUCCESS; index++)
        code = stock_now->eval_node(asked, (int)nodes[index]);
    free(nodes);
    return code;
}

/* Tries that, and restores `asked` if it finds nothing. Jobs with devices need counters of Slurm's own. */
static bool has_one(topology_eval_t *asked)
{
    static Store store;
    const job_record_t *job = asked->job_ptr;
    if (asked->max_nodes != 1 || !job->details || job->gres_list_req || !ALLOWS_ONE_NODE(stock_now, asked))
        return false;
    topology_eval_t before = *asked;
    bitstr_t *candidates = bit_copy(asked->node_map), *required = job->details->req_node_bitmap;
    if (required)
        bit_and(asked->node_map, required);
    bitstr_t *tried = bit_copy(asked->node_map);
    bool is_found = keep_all(&store, asked, tried) && choose_one(asked) == SLURM_SUCCESS;
    if (!is_found) {
        bit_copybits(before.node_map, candidates);
        *asked = before;
        put_all_back(&store, asked, tried);
    }
    FREE_NULL_BITMAP(tried);
    FREE_NULL_BITMAP(candidates);
    return is_found;
}

int stock_choose(topology_eval_t *asked)
{
    uint64_t began = steady_time();
    FORGET_JOBINFO(asked->job_ptr);
    int code = has_one(asked) ? SLURM_SUCCESS : stock_now->eval_nodes(asked);
    stock_time += steady_time() - began;
    return code;
}

int stock_try(topology_eval_t *asked, bitstr_t *among, uint32_t most)
{
    static Store store;
    if (!keep_all(&store, asked, among))
        return SLURM_ERROR;
    topology_eval_t before = *asked;
    bool best_switch = asked->job_ptr->best_switch;
    bitstr_t *candidates = bit_copy(asked->node_map);
    bit_and(asked->node_map, among);
    if (most && (!asked->max_nodes || most < asked->max_nodes))
        asked->max_nodes = most;
    int code = stock_choose(asked);
    if (code != SLURM_SUCCESS) {
        bit_copybits(before.node_map, candidates);
        *asked = before;
        asked->job_ptr->best_switch = best_switch;
        put_all_back(&store, asked, among);
    } else
        asked->max_nodes = before.max_nodes;
    FREE_NULL_BITMAP(candidates);
    return code;
}
