#define _GNU_SOURCE
#include "stock.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

Stock stock;
uint64_t stock_time;
static void *library;

static bool opened(const char *directory, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/topology_%s.so", directory, name);
    if (access(path, R_OK))
        return false;
    /* Lazily: what the commands do not have, such as locks of slurmctld, they do not call either. */
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
    return !begin || begin() == SLURM_SUCCESS;
}

void stock_close(void)
{
    int (*end)(void) = library ? (int (*)(void))dlsym(library, "fini") : NULL;
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
    int code = stock.topology_p_eval_nodes(asked);
    stock_time += steady_time() - began;
    return code;
}

static void keep(Kept_Node *kept, avail_res_t *record, bitstr_t *free_cores)
{
    kept->record = record;
    kept->free_cores = free_cores ? bit_copy(free_cores) : NULL;
    if (!record)
        return;
    kept->before = *record;
    size_t bytes = record->sock_cnt * sizeof(uint16_t);
    if (record->avail_cores_per_sock && bytes && (kept->cores_before = malloc(bytes)))
        memcpy(kept->cores_before, record->avail_cores_per_sock, bytes);
}

static void put_back(Kept_Node *kept, bitstr_t **free_cores)
{
    avail_res_t *record = kept->record;
    if (record) {
        /* The stock plugin may have replaced this array and freed the former one. */
        uint16_t *cores = record->avail_cores_per_sock;
        size_t bytes = kept->before.sock_cnt * sizeof *cores;
        *record = kept->before;
        record->avail_cores_per_sock = cores;
        if (cores && kept->cores_before && xsize(cores) >= bytes)
            memcpy(cores, kept->cores_before, bytes);
    }
    if (kept->free_cores && *free_cores)
        bit_copybits(*free_cores, kept->free_cores);
    else if (kept->free_cores) {
        *free_cores = kept->free_cores;
        kept->free_cores = NULL;
    }
}

int stock_try(topology_eval_t *asked, bitstr_t *among, uint32_t most)
{
    int32_t count = bit_set_count(among);
    Kept_Node *kept = calloc(count ? count : 1, sizeof *kept);
    if (!kept)
        return SLURM_ERROR;
    size_t index = 0;
    bitoff_t last = bit_fls(among);
    for (bitoff_t node = bit_ffs(among); node >= 0 && node <= last; node++)
        if (bit_test(among, node))
            keep(&kept[index++], asked->avail_res_array[node], asked->avail_core[node]);
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
        for (bitoff_t node = bit_ffs(among); node >= 0 && node <= last; node++)
            if (bit_test(among, node))
                put_back(&kept[index++], &asked->avail_core[node]);
    } else
        asked->max_nodes = before.max_nodes;
    for (int32_t each = 0; each < count; each++) {
        free(kept[each].cores_before);
        FREE_NULL_BITMAP(kept[each].free_cores);
    }
    free(kept);
    FREE_NULL_BITMAP(candidates);
    return code;
}
