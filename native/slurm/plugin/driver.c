#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"
#include "look.h"
#include "publish.h"
#include "report.h"
#include "running.h"
#include "whole_file.h"

Driver driver;

/* The path of a file in the directory of slurm.conf. */
static char *next_to_conf(const char *name)
{
    char *theirs = get_extra_conf_path((char *)name), *path = theirs ? strdup(theirs) : NULL;
    xfree(theirs);
    return path;
}

char *driver_config_path(void)
{
    return next_to_conf("topolane.conf");
}

/* The facts that the plugin publishes about itself: lines of topolane_jobs. Open only in driver_open; NULL without memory. */
static FILE *about;

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    if (about)
        vfprintf(about, format, rest);
    va_end(rest);
}

/* Makes a sentence safe for the log and topolane_jobs: it may quote arbitrary bytes of a file, and be too long. */
static void make_readable(char *sentence)
{
    enum { MOST = 500 };
    for (size_t index = 0; sentence[index]; index++) {
        if (sentence[index] < ' ' || sentence[index] > '~')
            sentence[index] = '?';
        if (index == MOST && sentence[index + 1])
            strcpy(&sentence[index - 2], "...");
    }
}

/* Reports why the plugin is not active. Frees the sentence. */
static bool give_up(char *why)
{
    if (why)
        make_readable(why);
    const char *sentence = why ? why : "no memory";
    error("topolane: not active, stock Slurm chooses all nodes: %s", sentence);
    tell("why %s\n", sentence);
    free(driver.why);
    driver.why = why;
    return false;
}

/* Reports an assumption about the machine. */
static void assume(const char *sentence)
{
    info("topolane: %s", sentence);
    tell("assumed %s\n", sentence);
}

/* Publishes the checksum of a file in use, so that a backup controller can compare its own file with it. */
static void tell_checksum(const char *what, const char *text, size_t length)
{
    tell("%s %08" PRIx32 "\n", what, crc_of(text, length));
}

static void tell_library(const char *what, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    char *why = whole_file(path, MOST_LIBRARY, &bytes, &length);
    if (!why)
        tell_checksum(what, bytes, length);
    free(why);
    free(bytes);
}

static void tell_host_and_plugin(void)
{
    char name[256] = "";
    if (!gethostname(name, sizeof name - 1) && *name)
        tell("host %s\n", name);
    Dl_info where;
    if (dladdr((void *)tell_host_and_plugin, &where) && where.dli_fname)
        tell_library("plugin-checksum", where.dli_fname);
}

static bool open_engine(void)
{
    char *why = engine_load(&driver.engine, driver.config.engine);
    if (why)
        return give_up(why);
    tell_library("engine-checksum", driver.config.engine);
    return true;
}

static bool open_config(void)
{
    char *path = driver_config_path(), *text = NULL;
    size_t length = 0;
    char *why = path ? whole_file(path, MOST_CONFIG, &text, &length) : NULL;
    if (text)
        tell_checksum("conf-checksum", text, length);
    /* Without a file there is still a configuration: no rules, so that stock Slurm decides. */
    char *wrong = config_read(&driver.config, path ? path : "topolane.conf", text ? text : "", length);
    if (about)
        config_print(about, &driver.config);
    if (why)
        free(wrong);
    else
        why = wrong;
    bool is_read = path && !why;
    free(text);
    free(path);
    return is_read || give_up(why);
}

/* Reads one machine file. Returns NULL, or a sentence that the caller frees. */
static char *read_machine(const char *given, topolane_machine **machine)
{
    char *path = *given == '/' ? strdup(given) : next_to_conf(given);
    char *text = NULL, *problem = NULL;
    size_t length = 0;
    *machine = NULL;
    char *why = path ? whole_file(path, MOST_MACHINE, &text, &length) : strdup("no memory");
    if (!why && driver.engine.machine_read(path, text, length, machine, &problem) != TOPOLANE_STATUS_OK) {
        why = strdup(problem ? problem : "the machine file cannot be read");
        driver.engine.text_free(problem);
    }
    if (!why)
        driver.owners.machine = sum_on(driver.owners.machine, text, length);
    free(text);
    free(path);
    return why;
}

/* Makes one machine from two: the one with the cables and the one with the names. */
static char *join_machines(topolane_machine *wiring, topolane_machine *tree)
{
    char *notes = NULL, *problem = NULL, *why = NULL, *rest = NULL;
    if (driver.engine.machine_join(wiring, tree, &driver.machine, &notes, &problem) != TOPOLANE_STATUS_OK)
        why = strdup(problem ? problem : "the machine files do not fit together");
    for (char *line = notes ? strtok_r(notes, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        assume(line);
    driver.engine.text_free(notes);
    driver.engine.text_free(problem);
    driver.engine.machine_free(wiring);
    driver.engine.machine_free(tree);
    return why;
}

static bool open_machine(void)
{
    const char *given = driver.config.machine ? driver.config.machine : "topology.conf";
    char *first = strdup(given), *second = first ? strchr(first, ',') : NULL;
    if (second)
        *second++ = '\0';
    driver.owners.machine = SUM_OF_NOTHING;
    topolane_machine *tree = NULL;
    char *why = first ? read_machine(first, &driver.machine) : strdup("no memory");
    if (!why && second) {
        topolane_machine *wiring = driver.machine;
        driver.machine = NULL;
        why = read_machine(second, &tree);
        if (why)
            driver.engine.machine_free(wiring);
        else
            why = join_machines(wiring, tree);
    }
    free(first);
    if (why)
        return give_up(why);
    driver.machine_nodes = driver.engine.machine_nodes(driver.machine);
    info("topolane: %s: %u nodes", given, driver.machine_nodes);
    tell("machine %s %u\nmachine-sum %016" PRIx64 "\n", given, driver.machine_nodes, driver.owners.machine);
    size_t length = strlen(given);
    if (!second && length > 5 && (!strcmp(given + length - 5, ".conf") || !strcmp(given + length - 5, ".yaml")))
        assume("Slurm's own file has no number of cables: one between each pair of switches is assumed");
    return true;
}

/* Why a policy that jobs can have does not work on the machine, in a sentence that the caller frees; NULL if it works or no
 * job can have it. Each of its jobs would wait for ever. */
static char *unfit_policy(const Policy_Kind *kind, const topolane_policy *policy)
{
    int line = config_line_with(&driver.config, kind);
    char *problem = NULL, *why = NULL;
    if (line < 0 || driver.engine.policy_check(policy, driver.machine, &problem) == TOPOLANE_STATUS_OK)
        return NULL;
    const char *what = problem ? problem : kind->name;
    int length = line ? asprintf(&why, "topolane.conf, line %d: %s", line, what)
                      : asprintf(&why, "topolane.conf, JobsMay: %s", what);
    driver.engine.text_free(problem);
    return length < 0 ? strdup("no memory") : why;
}

static bool open_policies(void)
{
    for (size_t index = 0; index < POLICY_COUNT; index++) {
        const Policy_Kind *kind = &POLICIES[index];
        char *problem = NULL, *why = NULL;
        if (kind->is_stock)
            continue;
        if (driver.engine.policy_new(kind->name, 0, &driver.policies[index], &problem) != TOPOLANE_STATUS_OK)
            why = strdup(problem ? problem : kind->name);
        else
            why = unfit_policy(kind, driver.policies[index]);
        driver.engine.text_free(problem);
        if (why)
            return give_up(why);
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
    char *why = holders_open(&driver.holders, &driver.engine, driver.machine, free_map);
    return why ? give_up(why) : true;
}

void driver_read_owners(void)
{
    if (driver.are_owners_read || !driver.owners_path)
        return;
    driver.are_owners_read = true;
    owners_free(&driver.owners);
    running_forget();
    links_out_look();
    char *why = owners_read(&driver.owners, driver.owners_path);
    if (why)
        error("topolane: %s: %s", driver.owners_path, why);
    else if (driver.owners.count)
        info("topolane: the file of links names %zu jobs", driver.owners.count);
    free(why);
}

void driver_take_links_out(void)
{
    Links_Out out;
    char *why;
    if (!links_out_take(&out, &why))
        return;
    bool is_same = !why && links_out_same(&out, &driver.holders.out);
    if (!why)
        why = holders_set_out(&driver.holders, out);
    const Links_Out *now = &driver.holders.out;
    if (why)
        say(SAY_OUT, "%s: %s/topolane_links_out: %s",
            links_out_count(now) ? "the links out of service are those of before"
                                 : "no link counts as out of service, run topolane slurm outages",
            slurm_conf.state_save_location, why);
    else if (!is_same) {
        info("topolane: %zu links have failed, %zu are reserved", now->failed, now->reserved);
        publish_out(links_out_count(now));
    }
    free(why);
}

/* Opens everything that the plugin needs. Reports any failure. */
static bool open_all(void)
{
    tell_host_and_plugin();
    if (layout_of_new() == LAYOUT_DIFFERS)
        return give_up(strdup("slurmctld's records differ from the headers with which the plugin was compiled: compile it "
                              "with the source of the installed package"));
    return open_config() && open_engine() && open_machine() && open_policies() && open_state();
}

void driver_open(void)
{
    char *lines = NULL;
    size_t length;
    about = open_memstream(&lines, &length);
    driver.is_opened = true;
    driver.is_active = open_all();
    if (about)
        fclose(about);
    about = NULL;
    if (driver.is_active)
        info("topolane: active, %zu rules, engine %s", driver.config.rule_count, driver.config.engine);
    publish_open(slurm_conf.state_save_location, lines, driver.is_active, driver.machine_nodes, layout_boot_time(),
                 &look_looks);
    free(lines);
    links_out_open(slurm_conf.state_save_location, driver.owners.machine);
}

char *driver_check(void)
{
    char *lines = NULL;
    size_t length;
    about = open_memstream(&lines, &length);
    tell_host_and_plugin();
    bool is_read = open_config();
    bool is_whole = is_read && open_engine() && open_machine() && open_policies();
    for (uint32_t node = 0; is_whole && node < driver.machine_nodes; node++)
        tell("node %s\n", driver.engine.machine_node_name(driver.machine, node));
    if (about)
        fclose(about);
    about = NULL;
    return lines;
}

static void free_maps(void)
{
    free(driver.machine_node);
    free(driver.slurm_node);
    free(driver.machine_bits);
    driver.machine_bits = NULL;
    FREE_NULL_BITMAP(driver.unknown);
    driver.machine_node = driver.slurm_node = NULL;
    driver.mapped_nodes = driver.mapped_active = 0;
}

void driver_close(void)
{
    driver.is_active = false;
    publish_close();
    links_out_close();
    running_forget();
    holders_close(&driver.holders);
    owners_free(&driver.owners);
    for (size_t index = 0; driver.engine.policy_free && index < POLICY_COUNT; index++)
        driver.engine.policy_free(driver.policies[index]);
    if (driver.engine.machine_free)
        driver.engine.machine_free(driver.machine);
    free(driver.owners_path);
    free(driver.why);
    free_maps();
    config_free(&driver.config);
    driver = (Driver){0};
}

void driver_took_control(void)
{
    if (driver.had_control) {
        driver_close();
        driver_open();
    }
    driver.had_control = driver.is_opened;
}

void driver_nodes_changed(void)
{
    driver.have_nodes_changed = true;
}

static uint64_t sum_of_names(void)
{
    uint64_t sum = SUM_OF_NOTHING;
    for (int node = 0; node < node_record_count; node++) {
        const char *name = node_record_table_ptr[node] ? node_record_table_ptr[node]->name : "";
        sum = sum_on(sum, name, strlen(name) + 1);
    }
    return sum;
}

static bool are_nodes_mapped(void)
{
    if (!driver.unknown || driver.have_nodes_changed || driver.mapped_nodes != node_record_count ||
        driver.mapped_active != active_node_record_count)
        return false;
    time_t now = time(NULL);
    if (now == driver.compared_at)
        return true;
    driver.compared_at = now;
    return sum_of_names() == driver.mapped_names;
}

bool driver_map_nodes(void)
{
    if (are_nodes_mapped())
        return true;
    free_maps();
    driver.machine_node = malloc((size_t)node_record_count * sizeof *driver.machine_node);
    driver.slurm_node = malloc((driver.machine_nodes ? driver.machine_nodes : 1) * sizeof *driver.slurm_node);
    driver.unknown = bit_alloc(node_record_count);
    driver.machine_words = driver.machine_nodes / 64 + 1;
    driver.machine_bits = calloc(driver.machine_words, sizeof *driver.machine_bits);
    driver.is_in_order = true;
    if (!driver.machine_node || !driver.slurm_node || !driver.unknown || !driver.machine_bits)
        return false;
    for (int node = 0; node < node_record_count; node++)
        driver.machine_node[node] = UNKNOWN;
    for (uint32_t number = 0; number < driver.machine_nodes; number++) {
        const node_record_t *record = find_node_record((char *)driver.engine.machine_node_name(driver.machine, number));
        driver.slurm_node[number] = record ? record->index : UNKNOWN;
        if (record)
            driver.machine_node[record->index] = number;
        driver.is_in_order = driver.is_in_order && (!record || (uint32_t)record->index == number);
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
    publish_unnamed((size_t)bit_set_count(driver.unknown), first);
    driver.mapped_nodes = node_record_count;
    driver.mapped_active = active_node_record_count;
    driver.mapped_names = sum_of_names();
    driver.have_nodes_changed = false;
    running_forget();
    return true;
}

/* Reads the job's --topolane option. Returns false if there is none or it cannot be read. */
static bool option_of(const job_record_t *job, Option *option)
{
    for (uint32_t index = 0; index < job->spank_job_env_size; index++) {
        const char *variable = job->spank_job_env[index];
        if (!variable || strncmp(variable, OPTION_IN_JOB, sizeof OPTION_IN_JOB - 1))
            continue;
        char *why = option_read(option, variable + sizeof OPTION_IN_JOB - 1);
        bool is_read = !why;
        free(why);
        return is_read;
    }
    return false;
}

Terms driver_terms(const job_record_t *job)
{
    const char *partition = job->part_ptr ? job->part_ptr->name : job->partition;
    const Rule *rule = config_rule(&driver.config, partition, job->qos_ptr ? job->qos_ptr->name : NULL, job->account);
    Option option;
    return config_terms(&driver.config, rule, option_of(job, &option) ? &option : NULL);
}

topolane_policy *driver_policy(const Policy_Kind *kind)
{
    return driver.policies[kind - POLICIES];
}

bool driver_can_read_jobs(void)
{
    Layout layout = layout_compared();
    if (layout == LAYOUT_DIFFERS && driver.is_active) {
        driver_close();
        driver_open();
    }
    return layout == LAYOUT_FITS;
}

bool driver_has_policies(void)
{
    const Config *config = &driver.config;
    bool any = config->jobs_may != NULL;
    for (size_t index = 0; index < config->rule_count && !any; index++)
        any = !config->rules[index].policy->is_stock;
    return driver.is_active && any;
}

uint32_t driver_links_of(const Policy_Kind *policy)
{
    if (!policy->isolates)
        return TOPOLANE_LINKS_SHARED;
    return policy->between_groups ? TOPOLANE_LINKS_ISOLATED_GLOBAL : TOPOLANE_LINKS_ISOLATED;
}

const char *driver_link_use(uint32_t link_use)
{
    switch (link_use) {
    case TOPOLANE_LINKS_ISOLATED:
        return "isolated";
    case TOPOLANE_LINKS_ISOLATED_GLOBAL:
        return "isolated-global";
    case TOPOLANE_LINKS_SHARED:
        return "shared";
    default:
        return "none";
    }
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
    *count = 0;
    if (!nodes)
        return NULL;
    for (bitoff_t node = bit_ffs(map); node >= 0 && node < driver.mapped_nodes; node = bit_ffs_from_bit(map, node + 1))
        if (driver.machine_node[node] != UNKNOWN)
            nodes[(*count)++] = driver.machine_node[node];
    if (!driver.is_in_order)
        qsort(nodes, *count, sizeof *nodes, ascending);
    return nodes;
}

const uint64_t *driver_bits(bitstr_t *map)
{
    uint64_t *bits = driver.machine_bits;
    size_t words = map_words(map) < driver.machine_words ? map_words(map) : driver.machine_words;
    if (!bits)
        return NULL;
    memset(bits, 0, driver.machine_words * sizeof *bits);
    /* Bits beyond the machine are harmless: the engine ignores them. */
    for (size_t word = 0; driver.is_in_order && word < words; word++)
        bits[word] = map_word(map, word);
    if (driver.is_in_order)
        return bits;
    for (bitoff_t node = bit_ffs(map); node >= 0 && node < driver.mapped_nodes; node = bit_ffs_from_bit(map, node + 1))
        if (driver.machine_node[node] != UNKNOWN)
            bits[driver.machine_node[node] / 64] |= UINT64_C(1) << driver.machine_node[node] % 64;
    return bits;
}

bool driver_has_weights(void)
{
    static time_t looked;
    static bool found;
    time_t now = time(NULL);
    if (now == looked)
        return found;
    looked = now;
    const node_record_t *first = NULL;
    found = false;
    for (int node = 0; node < node_record_count && !found; node++) {
        const node_record_t *record = node_record_table_ptr[node];
        first = first ? first : record;
        found = record && record->sched_weight != first->sched_weight;
    }
    return found;
}
