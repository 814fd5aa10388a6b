#define _GNU_SOURCE
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "running.h"
#include "whole_file.h"

Driver driver;

/* Beside topology.conf, which Slurm finds beside slurm.conf. */
static char *beside(const char *name)
{
    char *path = NULL;
    const char *slash = topo_conf ? strrchr(topo_conf, '/') : NULL;
    if (asprintf(&path, "%.*s/%s", slash ? (int)(slash - topo_conf) : 1, slash ? topo_conf : ".", name) < 0)
        return NULL;
    return path;
}

char *driver_config_path(void)
{
    return beside("topolane.conf");
}

/* Says why the plugin is not active; frees the sentence. */
static bool give_up(char *why)
{
    error("topolane: not active, stock Slurm chooses all nodes: %s", why ? why : "no memory");
    free(why);
    return false;
}

static bool open_config(void)
{
    char *path = driver_config_path(), *text = NULL;
    size_t length = 0;
    char *why = path ? whole_file(path, &text, &length) : NULL;
    if (path && !why)
        why = config_read(&driver.config, path, text);
    bool is_read = path && !why;
    free(text);
    free(path);
    return is_read || give_up(why);
}

static bool open_machine(void)
{
    const char *given = driver.config.machine;
    char *path = given && *given == '/' ? strdup(given) : beside(given ? given : "topology.conf");
    char *text = NULL, *problem = NULL;
    size_t length = 0;
    char *why = path ? whole_file(path, &text, &length) : NULL;
    if (path && !why &&
        driver.engine.machine_read(path, text, length, &driver.machine, &problem) != TOPOLANE_STATUS_OK) {
        why = strdup(problem ? problem : "the machine file cannot be read");
        driver.engine.text_free(problem);
    }
    bool is_read = path && !why;
    if (is_read) {
        driver.machine_nodes = driver.engine.machine_nodes(driver.machine);
        driver.owners.machine = sum_of(text, length);
        info("topolane: %s: %u nodes", path, driver.machine_nodes);
        if (!given)
            info("topolane: topology.conf has no number of cables: one between each pair of switches is assumed");
    }
    free(text);
    free(path);
    return is_read || give_up(why);
}

static bool open_policies(void)
{
    const Config *config = &driver.config;
    driver.policies = calloc(config->rule_count + 1, sizeof *driver.policies);
    if (!driver.policies)
        return give_up(NULL);
    for (size_t index = 0; index < config->rule_count; index++) {
        const Policy_Kind *kind = config->rules[index].policy;
        char *problem = NULL;
        if (kind->is_stock)
            continue;
        if (driver.engine.policy_new(kind->name, 0, &driver.policies[index], &problem) != TOPOLANE_STATUS_OK) {
            char *why = strdup(problem ? problem : kind->name);
            driver.engine.text_free(problem);
            return give_up(why);
        }
    }
    return true;
}

static void free_map(void *map)
{
    bitstr_t *nodes = map;
    FREE_NULL_BITMAP(nodes);
}

static bool open_state(void)
{
    const char *directory = slurm_conf.state_save_location;
    if (asprintf(&driver.owners_path, "%s/topolane_links", directory) < 0)
        driver.owners_path = NULL;
    if (asprintf(&driver.report_path, "%s/topolane_counters", directory) < 0)
        driver.report_path = NULL;
    char *why = holders_open(&driver.holders, &driver.engine, driver.machine, free_map);
    if (why)
        return give_up(why);
    why = driver.owners_path ? owners_read(&driver.owners, driver.owners_path) : NULL;
    if (why)
        error("topolane: %s: %s", driver.owners_path, why);
    else if (driver.owners.count)
        info("topolane: %zu jobs own links", driver.owners.count);
    free(why);
    return true;
}

void driver_open(void)
{
    if (!open_config())
        return;
    char *why = engine_load(&driver.engine, driver.config.engine);
    if (why) {
        give_up(why);
        return;
    }
    driver.is_active = open_machine() && open_policies() && open_state();
    if (driver.is_active)
        info("topolane: active, %zu rules, engine %s", driver.config.rule_count, driver.config.engine);
}

static void free_maps(void)
{
    free(driver.machine_node);
    free(driver.slurm_node);
    FREE_NULL_BITMAP(driver.unknown);
    driver.machine_node = driver.slurm_node = NULL;
    driver.mapped_nodes = driver.mapped_active = 0;
}

void driver_close(void)
{
    driver.is_active = false;
    running_forget();
    holders_close(&driver.holders);
    owners_free(&driver.owners);
    for (size_t index = 0; driver.policies && index < driver.config.rule_count; index++)
        driver.engine.policy_free(driver.policies[index]);
    free(driver.policies);
    if (driver.engine.machine_free)
        driver.engine.machine_free(driver.machine);
    free(driver.owners_path);
    free(driver.report_path);
    free_maps();
    config_free(&driver.config);
    driver = (Driver){0};
}

bool driver_map_nodes(void)
{
    if (driver.unknown && driver.mapped_nodes == node_record_count &&
        driver.mapped_active == active_node_record_count)
        return true;
    free_maps();
    driver.machine_node = malloc((size_t)node_record_count * sizeof *driver.machine_node);
    driver.slurm_node = malloc((driver.machine_nodes ? driver.machine_nodes : 1) * sizeof *driver.slurm_node);
    driver.unknown = bit_alloc(node_record_count);
    if (!driver.machine_node || !driver.slurm_node || !driver.unknown)
        return false;
    for (int node = 0; node < node_record_count; node++)
        driver.machine_node[node] = UNKNOWN;
    for (uint32_t number = 0; number < driver.machine_nodes; number++) {
        const node_record_t *record = find_node_record((char *)driver.engine.machine_node_name(driver.machine, number));
        driver.slurm_node[number] = record ? record->index : UNKNOWN;
        if (record)
            driver.machine_node[record->index] = number;
    }
    const char *first = NULL;
    for (int node = 0; node < node_record_count; node++)
        if (node_record_table_ptr[node] && driver.machine_node[node] == UNKNOWN) {
            bit_set(driver.unknown, node);
            first = first ? first : node_record_table_ptr[node]->name;
        }
    if (first)
        error("topolane: the machine file does not name %d nodes, such as %s: stock Slurm chooses among them",
              bit_set_count(driver.unknown), first);
    driver.mapped_nodes = node_record_count;
    driver.mapped_active = active_node_record_count;
    running_forget();
    return true;
}

const Rule *driver_rule(const job_record_t *job)
{
    const char *partition = job->part_ptr ? job->part_ptr->name : job->partition;
    return config_rule(&driver.config, partition, job->qos_ptr ? job->qos_ptr->name : NULL, job->account);
}

topolane_policy *driver_policy(const Rule *rule)
{
    if (rule < driver.config.rules || rule >= driver.config.rules + driver.config.rule_count)
        return NULL;
    return driver.policies[rule - driver.config.rules];
}

static int ascending(const void *one, const void *other)
{
    uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
    return (left > right) - (left < right);
}

uint32_t *driver_nodes(bitstr_t *map, size_t *count)
{
    int32_t most = bit_set_count(map);
    uint32_t *nodes = malloc((most ? (size_t)most : 1) * sizeof *nodes);
    bool is_sorted = true;
    *count = 0;
    if (!nodes)
        return NULL;
    bitoff_t last = bit_fls(map);
    for (bitoff_t node = bit_ffs(map); node >= 0 && node <= last && node < driver.mapped_nodes; node++) {
        uint32_t number = bit_test(map, node) ? driver.machine_node[node] : UNKNOWN;
        if (number == UNKNOWN)
            continue;
        is_sorted = is_sorted && (*count == 0 || nodes[*count - 1] < number);
        nodes[(*count)++] = number;
    }
    if (!is_sorted)
        qsort(nodes, *count, sizeof *nodes, ascending);
    return nodes;
}
