#define _GNU_SOURCE
#include "stock.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

Stock stock;
Stock_Evaluation *stock_evaluation;
uint64_t stock_time;
static void *library;

static bool opened(const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct stat file, own = {0};
    Dl_info where;
    if (dladdr((void *)opened, &where) && where.dli_fname)
        stat(where.dli_fname, &own);
    snprintf(path, sizeof path, "%s/topology_%s.so", directory, name);
    if (stat(path, &file) || (file.st_ino == own.st_ino && file.st_dev == own.st_dev))
        return false;
    /* Lazy binding, because the commands lack some symbols, such as locks of slurmctld. They never call these. */
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        error("topolane: %s", dlerror());
    return library != NULL;
}

bool stock_load(const char *name)
{
    char *directories = strdup(slurm_conf.plugindir ? slurm_conf.plugindir : ""), *rest = NULL;
    for (char *each = strtok_r(directories, ":", &rest); each && !library; each = strtok_r(NULL, ":", &rest))
        opened(each, name);
    free(directories);
    if (!library) {
        error("topolane: there is no topology_%s.so in PluginDir=%s", name, slurm_conf.plugindir);
        return false;
    }
    int (*begin)(void) = (int (*)(void))dlsym(library, "init");
    uint32_t *id = dlsym(library, "plugin_id");
    bool whole = id != NULL;
#define ENTRY(type, name, parameters, arguments)                                                                    \
    stock.name = (type(*) parameters)dlsym(library, #name);                                                         \
    whole = whole && stock.name;
    STOCK_ENTRIES(ENTRY)
#undef ENTRY
    if (!whole) {
        error("topolane: topology_%s.so has not the entry points of this release", name);
        return false;
    }
    stock.plugin_id = *id;
    const bool *exclusive = dlsym(library, "supports_exclusive_topo");
    stock.supports_exclusive_topo = exclusive && *exclusive;
    return !begin || begin() == SLURM_SUCCESS;
}

void stock_close(void)
{
    FINI_TYPE (*end)(void) = library ? (FINI_TYPE(*)(void))dlsym(library, "fini") : NULL;
    if (end)
        end();
    if (library)
        dlclose(library);
    library = NULL;
    stock = (Stock){0};
}

int stock_choose(topology_eval_t *asked)
{
    uint64_t began = steady_time();
    FORGET_JOBINFO(asked->job_ptr);
    int code = stock_evaluation(asked);
    stock_time += steady_time() - began;
    return code;
}

/* Copies of data that the stock plugin may change. They share one buffer, so a call with many nodes needs few
 * allocations. */
static struct {
    char *bytes;
    size_t used, room;
} arena;

/* Copies bytes into the arena, aligned to eight. Returns their position, or NO_COPY. */
enum { NO_COPY = 0 };
static size_t stored(const void *from, size_t bytes)
{
    size_t at = arena.used ? arena.used : 8, end = at + (bytes + 7) / 8 * 8;
    if (end > arena.room) {
        size_t room = 2 * end;
        char *more = realloc(arena.bytes, room);
        if (!more)
            return NO_COPY;
        arena.bytes = more;
        arena.room = room;
    }
    memcpy(arena.bytes + at, from, bytes);
    arena.used = end;
    return at;
}

static Kept_Node keep(avail_res_t *record, const bitstr_t *free_cores)
{
    Kept_Node kept = {.record = record};
    if (free_cores) {
        kept.free_bytes = (2 + map_words((bitstr_t *)free_cores)) * sizeof *free_cores;
        kept.free_cores = stored(free_cores, kept.free_bytes);
    }
    if (record) {
        kept.before = *record;
        size_t bytes = record->sock_cnt * sizeof *record->avail_cores_per_sock;
        if (record->avail_cores_per_sock && bytes)
            kept.cores = stored(record->avail_cores_per_sock, bytes);
    }
    return kept;
}

static void put_back(const Kept_Node *kept, bitstr_t **free_cores)
{
    avail_res_t *record = kept->record;
    if (record) {
        /* The stock plugin may have replaced this array and freed the former one. */
        uint16_t *cores = record->avail_cores_per_sock;
        size_t bytes = kept->before.sock_cnt * sizeof *cores;
        *record = kept->before;
        record->avail_cores_per_sock = cores;
        if (cores && kept->cores && xsize(cores) >= bytes)
            memcpy(cores, arena.bytes + kept->cores, bytes);
    }
    if (!kept->free_cores)
        return;
    const bitstr_t *before = (const bitstr_t *)(arena.bytes + kept->free_cores);
    if (!*free_cores || bit_size(*free_cores) != bit_size((bitstr_t *)before)) {
        FREE_NULL_BITMAP(*free_cores);
        *free_cores = bit_alloc(bit_size((bitstr_t *)before));
    }
    memcpy(*free_cores, before, kept->free_bytes);
}

int stock_try(topology_eval_t *asked, bitstr_t *among, uint32_t most)
{
    static Kept_Node *kept;
    static size_t room;
    size_t count = (size_t)bit_set_count(among), index = 0;
    if (count > room) {
        Kept_Node *more = realloc(kept, 2 * count * sizeof *kept);
        if (!more)
            return SLURM_ERROR;
        kept = more;
        room = 2 * count;
    }
    arena.used = 0;
    for (bitoff_t node = bit_ffs(among); node >= 0; node = bit_ffs_from_bit(among, node + 1))
        kept[index++] = keep(asked->avail_res_array[node], asked->avail_core[node]);
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
        index = 0;
        for (bitoff_t node = bit_ffs(among); node >= 0; node = bit_ffs_from_bit(among, node + 1))
            put_back(&kept[index++], &asked->avail_core[node]);
    } else
        asked->max_nodes = before.max_nodes;
    FREE_NULL_BITMAP(candidates);
    return code;
}
