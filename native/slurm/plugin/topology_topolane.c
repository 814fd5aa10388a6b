/* topology/topolane: a topology plugin of slurmctld that wraps the stock one.
 *
 * In a call of topology_p_eval_nodes it may reduce the candidates before the stock evaluation chooses cores and devices
 * on them. The stock plugin does everything else. docs/explanation/slurm-plugin.md explains it.
 *
 * slurmd, the commands and slurmrestd load this plugin too; there it only forwards calls. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "driver.h"
#include "release.h"
#include "segments.h"
#include "stock.h"
#include "whole_file.h"

const char plugin_name[] = "Topolane topology plugin";
/* Slurm's headers declare this constant; its value depends on the file's name. */
static char own_type[64] = "topology/topolane";
extern const char plugin_type[sizeof own_type] __attribute__((alias("own_type")));
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
/* These are the stock plugin's: clients unpack its answers, and it serves Exclusive=TOPO or not. */
uint32_t plugin_id = TOPOLOGY_PLUGIN_TREE;
bool supports_exclusive_topo;

static const Core *core;
static unsigned users; /* Slurm loads a plugin again for each topology of its type. */

/* Slurm looks at the type before it calls init. */
__attribute__((constructor)) static void take_name(void)
{
    snprintf(own_type, sizeof own_type, "topology/%s", core_own_name());
}

/* Loads the stock plugin of the name under which Slurm knows this library. For topology/topolane it is the one that
 * topolane.conf names; tree if the file cannot be read. */
static bool load_stock(void)
{
    if (strcmp(core_own_name(), "topolane"))
        return !core_has_other_names() && stock_load(core_own_name());
    char *path = driver_config_path(), *text = NULL;
    size_t length;
    Config config = {0};
    free(path ? whole_file(path, MOST_CONFIG, &text, &length) : NULL);
    free(text ? config_read(&config, path, text, length) : NULL);
    bool is_loaded = stock_load(config.stock ? config.stock : "tree");
    config_free(&config);
    free(text);
    free(path);
    return is_loaded;
}

int init(void)
{
    if (!users && !load_stock())
        return SLURM_ERROR;
    if (users++)
        return SLURM_SUCCESS;
    plugin_id = stock.plugin_id;
    supports_exclusive_topo = stock.supports_exclusive_topo;
    core = core_find();
    if (core)
        core->open();
    return SLURM_SUCCESS;
}

FINI_TYPE fini(void)
{
    if (users && !--users) {
        if (core)
            core->close();
        core = NULL;
        stock_close();
    }
    return FINI_RESULT;
}

#define FORWARD(type, name, parameters, arguments)                                                                  \
    type name parameters                                                                                            \
    {                                                                                                               \
        return stock.name arguments;                                                                                \
    }
STOCK_ONLY_ENTRIES(FORWARD)

/* If this is true, jobs of one node skip topology_p_eval_nodes and get a node without a policy. */
#define UNLESS_PLACED(type, name, parameters, arguments)                                                            \
    type name parameters                                                                                            \
    {                                                                                                               \
        return !(core && core->has_policies()) && stock.name arguments;                                             \
    }
ONE_NODE_ENTRIES(UNLESS_PLACED)

/* Slurm asks for the nodes of the job that topology_p_eval_nodes placed last. */
#define UNLESS_RANKED(type, name, parameters, arguments)                                                            \
    type name parameters                                                                                            \
    {                                                                                                               \
        return core && core->rank(nodes, ranks, count) ? SLURM_SUCCESS : stock.name arguments;                      \
    }
RANK_ENTRIES(UNLESS_RANKED)

#define AFTER_CHANGE(type, name, parameters, arguments)                                                             \
    type name parameters                                                                                            \
    {                                                                                                               \
        if (core)                                                                                                   \
            core->nodes_changed();                                                                                  \
        return stock.name arguments;                                                                                \
    }
NODE_ENTRIES(AFTER_CHANGE)

/* Stock plugins other than topology/block store nothing, so what is there is the segments of this plugin. */
#define FREE_SEGMENTS(type, name, parameters, arguments)                                                            \
    type name parameters                                                                                            \
    {                                                                                                               \
        if (segments_are_stored_by(&stock))                                                                         \
            segments_free(info);                                                                                    \
        else                                                                                                        \
            stock.name arguments;                                                                                   \
    }
#define GET_SEGMENTS(type, name, parameters, arguments)                                                             \
    type name parameters                                                                                            \
    {                                                                                                               \
        if (!segments_are_stored_by(&stock))                                                                        \
            return stock.name arguments;                                                                            \
        *(list_t **)data = segments_of(info);                                                                       \
        return info ? SLURM_SUCCESS : SLURM_ERROR;                                                                  \
    }
JOBINFO_ENTRIES(FREE_SEGMENTS, GET_SEGMENTS)

int topology_p_build_config BUILD_PARAMETERS
{
    if (core)
        core->took_control(BUILD_CONTEXT);
    return stock.topology_p_build_config BUILD_ARGUMENTS;
}

int topology_p_eval_nodes(topology_eval_t *asked)
{
    return core ? core->place(asked, &stock) : stock.topology_p_eval_nodes(asked);
}
