/* topology/topolane: a topology plugin of slurmctld that wraps the stock one.
 *
 * In a call of topology_p_eval_nodes it may reduce the candidates before the stock evaluation chooses cores and devices
 * on them. The stock plugin does everything else. docs/explanation/slurm-plugin.md explains it.
 *
 * slurmd, the commands and slurmrestd load this plugin too; there it only forwards calls. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "driver.h"
#include "place.h"
#include "publish.h"
#include "release.h"
#include "stock.h"
#include "whole_file.h"

const char plugin_name[] = "Topolane topology plugin";
const char plugin_type[] = "topology/topolane";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
/* These are the stock plugin's: clients unpack its answers, and it serves Exclusive=TOPO or not. */
uint32_t plugin_id = TOPOLOGY_PLUGIN_TREE;
bool supports_exclusive_topo;

/* Loads the stock plugin that topolane.conf names; tree if the file cannot be read. */
static bool load_stock(void)
{
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
    if (!load_stock())
        return SLURM_ERROR;
    plugin_id = stock.plugin_id;
    supports_exclusive_topo = stock.supports_exclusive_topo;
    if (running_in_slurmctld() && &job_list && &idle_node_bitmap && &last_job_update && find_job_record)
        driver_open();
    return SLURM_SUCCESS;
}

FINI_TYPE fini(void)
{
    driver_close();
    stock_close();
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
        return !driver_has_policies() && stock.name arguments;                                                      \
    }
ONE_NODE_ENTRIES(UNLESS_PLACED)

int topology_p_build_config BUILD_PARAMETERS
{
    driver_took_control();
    publish_called(); /* Publish right after taking control whether the plugin is active. */
    return stock.topology_p_build_config BUILD_ARGUMENTS;
}

int topology_p_eval_nodes(topology_eval_t *asked)
{
    return place(asked);
}
