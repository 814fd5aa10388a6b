/* The topology plugin that Slurm loads: topology/topolane, or a copy that has the name of a stock plugin.
 *
 * It wraps the stock plugin, and lets a build for the running release choose among the candidates in
 * topology_p_eval_nodes: topolane/26.05.5.so in its directory (../plugin). Without such a build the stock plugin decides
 * everything. So Slurm may be updated before Topolane is.
 *
 * It is compiled without headers of Slurm and fits every release: Slurm compares plugin_version with its own number, and
 * here that is the number in the stock plugin next to libslurmfull. slurmd, the commands and slurmrestd load it too; there
 * it only forwards calls. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../plugin/config.h"
#include "../plugin/core.h"
#include "../plugin/whole_file.h"
#include "installed.h"

enum { SUCCESS = 0, FAILURE = -1, FIRST_WITH_CONTEXT = 25 << 16 | 5 << 8 };

/* Functions of Slurm. Other programs may load this library to check it. */
#pragma weak slurm_error
#pragma weak get_extra_conf_path
extern int slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char *get_extra_conf_path(char *name);

const char plugin_name[] = "Topolane topology plugin";
char plugin_type[64] = "topology/topolane";
uint32_t plugin_version;
/* These are the stock plugin's: clients unpack its answers, and it serves Exclusive=TOPO or not. */
uint32_t plugin_id;
bool supports_exclusive_topo;

/* Why Slurm must not take this library: a sentence. Its plugin_version then is 0, and Slurm looks in the next directory of
 * PluginDir. */
char topolane_fault[512];

/* Entry points that are only passed on: all of Slurm 24.11 to 26.05, except those defined at the end. */
#define FORWARDED(ENTRY)                                                                                            \
    ENTRY(topology_p_destroy_config)                                                                                \
    ENTRY(topology_p_eval_node)                                                                                     \
    ENTRY(topology_p_generate_node_ranking)                                                                         \
    ENTRY(topology_p_get)                                                                                           \
    ENTRY(topology_p_get_bitmap)                                                                                    \
    ENTRY(topology_p_get_fragmentation)                                                                             \
    ENTRY(topology_p_get_node_addr)                                                                                 \
    ENTRY(topology_p_get_topology_str)                                                                              \
    ENTRY(topology_p_jobinfo_pack)                                                                                  \
    ENTRY(topology_p_jobinfo_unpack)                                                                                \
    ENTRY(topology_p_split_hostlist)                                                                                \
    ENTRY(topology_p_topoinfo_free)                                                                                 \
    ENTRY(topology_p_topoinfo_pack)                                                                                 \
    ENTRY(topology_p_topoinfo_print)                                                                                \
    ENTRY(topology_p_topoinfo_unpack)                                                                               \
    ENTRY(topology_p_topology_free)                                                                                 \
    ENTRY(topology_p_topology_pack)                                                                                 \
    ENTRY(topology_p_topology_print)                                                                                \
    ENTRY(topology_p_topology_unpack)                                                                               \
    ENTRY(topology_p_whole_topo)
/* Entry points in which a build has a part too. */
#define SHARED(ENTRY)                                                                                               \
    ENTRY(topology_p_add_rm_node)                                                                                   \
    ENTRY(topology_p_build_config)                                                                                  \
    ENTRY(topology_p_get_rank)                                                                                      \
    ENTRY(topology_p_jobinfo_free)                                                                                  \
    ENTRY(topology_p_jobinfo_get)
#define ENTRIES(ENTRY)                                                                                              \
    ENTRY(topology_p_allow_one_node)                                                                                \
    ENTRY(topology_p_eval_nodes)                                                                                    \
    SHARED(ENTRY)                                                                                                   \
    FORWARDED(ENTRY)

/* At most six arguments and the result, each an integer or a pointer, are in the same registers whatever their types. */
typedef uintptr_t (*Entry)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
#define PARAMETERS uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f
#define ARGUMENTS a, b, c, d, e, f

static struct {
#define ENTRY(name) Entry name;
    FORWARDED(ENTRY)
    SHARED(ENTRY)
#undef ENTRY
} stock_entries;

static void *stock_library;
static Stock stock;
static const Core *core;
static unsigned users; /* Slurm loads a plugin again for each topology of its type. */

static bool is_in_slurmctld(void)
{
    return dlsym(RTLD_DEFAULT, "idle_node_bitmap") != NULL;
}

/* The name under which Slurm loads this library: topolane, or that of a stock plugin, such as tree. */
static const char *own_name(void)
{
    return strchr(plugin_type, '/') + 1;
}

static const char *own_path(void)
{
    Dl_info where;
    return dladdr((void *)own_path, &where) && where.dli_fname ? where.dli_fname : "";
}

static void take_name(void)
{
    static const char before[] = "topology_", after[] = ".so";
    const char *slash = strrchr(own_path(), '/'), *file = slash ? slash + 1 : own_path();
    size_t length = strlen(file), around = sizeof before - 1 + sizeof after - 1;
    if (length > around && length - around < 32 && !strncmp(file, before, sizeof before - 1))
        snprintf(plugin_type, sizeof plugin_type, "topology/%.*s", (int)(length - around), file + sizeof before - 1);
}

__attribute__((format(printf, 1, 2))) static bool give_up(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    vsnprintf(topolane_fault, sizeof topolane_fault, format, rest);
    va_end(rest);
    return false;
}

/* Whether no other topology plugin in the directory is a link to this file. The dynamic loader loads linked files once, so
 * all names would have the same stock plugin. */
static bool is_no_link(const char *folder)
{
    char own[64];
    struct stat file, self;
    snprintf(own, sizeof own, "topology_%s.so", own_name());
    DIR *directory = stat(own_path(), &self) ? NULL : opendir(folder);
    for (struct dirent *each; directory && !*topolane_fault && (each = readdir(directory));) {
        if (strncmp(each->d_name, "topology_", 9) || !strcmp(each->d_name, own))
            continue;
        if (!fstatat(dirfd(directory), each->d_name, &file, 0) && file.st_ino == self.st_ino &&
            file.st_dev == self.st_dev)
            give_up("%s and %s/%s are one file, and must be copies", own_path(), folder, each->d_name);
    }
    if (directory)
        closedir(directory);
    return !*topolane_fault;
}

/* The stock plugin under the name topology/topolane: that of topolane.conf; tree if the file cannot be read. */
static void configured_stock(char name[32])
{
    char *path = get_extra_conf_path ? get_extra_conf_path((char *)"topolane.conf") : NULL, *text = NULL;
    size_t length;
    Config config = {0};
    free(path ? whole_file(path, MOST_CONFIG, &text, &length) : NULL);
    free(text ? config_read(&config, path, text, length) : NULL);
    snprintf(name, 32, "%s", config.stock ? config.stock : "tree");
    config_free(&config);
    free(text); /* The path is Slurm's, whose allocations only Slurm can free. */
}

static bool open_stock(const char *folder, const char *name, char path[PATH_MAX])
{
    if (!*folder || snprintf(path, PATH_MAX, "%s/topology_%s.so", folder, name) >= PATH_MAX || access(path, R_OK))
        return false;
    /* Lazy binding, because the commands lack some symbols, such as locks of slurmctld. They never call these. */
    stock_library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!stock_library)
        give_up("%s", dlerror());
    /* A copy of this library would load this one as its stock plugin, without end. */
    if (stock_library && dlsym(stock_library, "topolane_fault")) {
        dlclose(stock_library);
        stock_library = NULL;
    }
    if (stock_library)
        *topolane_fault = '\0';
    return stock_library != NULL;
}

/* Whether this library has every entry point of the stock plugin, which has those that its release looks up. A missing one
 * ends slurmctld. */
static bool has_entries_of(const char *path)
{
    static const char *const known[] = {
#define ENTRY(name) #name,
        ENTRIES(ENTRY)
#undef ENTRY
    };
    enum { MOST = 64 << 20 };
    static const char prefix[] = "\0topology_p_";
    char *bytes = NULL;
    size_t length = 0;
    char *why = whole_file(path, MOST, &bytes, &length);
    if (why)
        give_up("%s", why);
    free(why);
    for (char *at = bytes; bytes && (at = memmem(at, (size_t)(bytes + length - at), prefix, sizeof prefix - 1));) {
        const char *name = ++at;
        size_t index = 0, count = sizeof known / sizeof *known;
        while (index < count && strcmp(known[index], name)) /* whole_file ends the bytes with 0 */
            index++;
        if (index == count && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
            give_up("it lacks %.100s, which this release of Slurm looks up", name);
    }
    free(bytes);
    return !*topolane_fault;
}

static bool take_stock(void)
{
    char folder[PATH_MAX], theirs[PATH_MAX], path[PATH_MAX], name[32];
    folder_of((void *)take_stock, folder);
    installed_folder(theirs);
    bool is_copy = strcmp(own_name(), "topolane");
    if (is_copy && !is_no_link(folder))
        return false;
    snprintf(name, sizeof name, "%s", own_name());
    if (!is_copy)
        configured_stock(name);
    if (!(!is_copy && open_stock(folder, name, path)) && !open_stock(theirs, name, path))
        return *topolane_fault ? false : give_up("there is no topology_%s.so of Slurm in %s", name, theirs);
    const uint32_t *id = dlsym(stock_library, "plugin_id");
    const bool *exclusive = dlsym(stock_library, "supports_exclusive_topo");
    if (!id)
        return give_up("%s is no topology plugin of Slurm", path);
#define ENTRY(name) stock_entries.name = (Entry)dlsym(stock_library, #name);
    FORWARDED(ENTRY)
    SHARED(ENTRY)
#undef ENTRY
    if (!has_entries_of(path))
        return false;
    stock.eval_nodes = (int (*)(void *))dlsym(stock_library, "topology_p_eval_nodes");
    stock.allow_one_node = (bool (*)(void *))dlsym(stock_library, "topology_p_allow_one_node");
    stock.eval_node = (int (*)(void *, int))dlsym(stock_library, "topology_p_eval_node");
    plugin_id = stock.plugin_id = *id;
    supports_exclusive_topo = exclusive && *exclusive;
    plugin_version = release_in(stock_library);
    return true;
}

/* Slurm looks at the type and the version before it calls init. */
__attribute__((constructor)) static void prepare(void)
{
    take_name();
    if (take_stock())
        return;
    if (is_in_slurmctld() && slurm_error)
        slurm_error("topolane: %s: %s", own_path(), topolane_fault);
}

__attribute__((destructor)) static void forget(void)
{
    if (stock_library)
        dlclose(stock_library);
}

/* The build for the release of the stock plugin. NULL, with a sentence in topolane_fault, if there is none. */
static const Core *build(void)
{
    char folder[PATH_MAX], path[PATH_MAX + 64], release[32];
    folder_of((void *)build, folder);
    snprintf(release, sizeof release, "%u.%02u.%u", plugin_version >> 16, plugin_version >> 8 & 255,
             plugin_version & 255);
    snprintf(path, sizeof path, "%s/topolane/%s.so", folder, release);
    if (access(path, F_OK)) {
        give_up("there is no build for Slurm %s: %.400s does not exist", release, path);
        return NULL;
    }
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    const Core *found = library ? dlsym(library, "topolane_core") : NULL;
    if (found && found->interface == CORE_INTERFACE && found->release == plugin_version)
        return found;
    if (!library)
        give_up("%s", dlerror());
    else if (!found || found->interface != CORE_INTERFACE)
        give_up("%.400s is of another version of Topolane", path);
    else
        give_up("%.400s is not for Slurm %s", path, release);
    return NULL;
}

int init(void)
{
    int (*begin)(void) = stock_library ? (int (*)(void))dlsym(stock_library, "init") : NULL;
    if (!stock_library || (!users && begin && begin() != SUCCESS))
        return FAILURE;
    if (users++ || !is_in_slurmctld())
        return SUCCESS;
    core = build();
    if (core)
        core->open();
    else if (slurm_error)
        slurm_error("topolane: not active, stock Slurm chooses all nodes: %s", topolane_fault);
    return SUCCESS;
}

int fini(void)
{
    if (!users || --users)
        return SUCCESS;
    if (core)
        core->close();
    core = NULL;
    void (*end)(void) = (void (*)(void))dlsym(stock_library, "fini");
    if (end)
        end();
    return SUCCESS;
}

/* For `topolane slurm plugin check`, in a process that is not slurmctld: what the build says of its files. */
const char *topolane_plugin_check(void)
{
    static char line[sizeof topolane_fault + 8];
    const Core *found = build();
    if (found)
        return found->check();
    snprintf(line, sizeof line, "why %s\n", topolane_fault);
    return line;
}

#define ENTRY(name)                                                                                                 \
    uintptr_t name(PARAMETERS);                                                                                     \
    uintptr_t name(PARAMETERS)                                                                                      \
    {                                                                                                               \
        return stock_entries.name(ARGUMENTS);                                                                       \
    }
FORWARDED(ENTRY)
#undef ENTRY

/* If this is true, jobs of one node skip topology_p_eval_nodes and get a node without a policy. */
bool topology_p_allow_one_node(void *context)
{
    return !(core && core->has_policies()) && stock.allow_one_node(context);
}

uintptr_t topology_p_build_config(PARAMETERS)
{
    if (core)
        core->took_control(plugin_version < FIRST_WITH_CONTEXT ? NULL : (const void *)a);
    return stock_entries.topology_p_build_config(ARGUMENTS);
}

uintptr_t topology_p_add_rm_node(PARAMETERS)
{
    if (core)
        core->nodes_changed();
    return stock_entries.topology_p_add_rm_node(ARGUMENTS);
}

/* Slurm asks for the nodes of the job that topology_p_eval_nodes placed last. */
uintptr_t topology_p_get_rank(PARAMETERS)
{
    if (core && core->rank((void *)a, (uint32_t **)b, (uint32_t *)c))
        return SUCCESS;
    return stock_entries.topology_p_get_rank(ARGUMENTS);
}

uintptr_t topology_p_jobinfo_free(PARAMETERS)
{
    if (core && core->free_segments((void *)a, &stock))
        return SUCCESS;
    return stock_entries.topology_p_jobinfo_free(ARGUMENTS);
}

/* Its first argument says what is asked for: segments are all that there is. */
uintptr_t topology_p_jobinfo_get(PARAMETERS)
{
    if (core && core->get_segments((void *)b, (void *)c, &stock))
        return SUCCESS;
    return stock_entries.topology_p_jobinfo_get(ARGUMENTS);
}

int topology_p_eval_nodes(void *asked)
{
    return core ? core->place(asked, &stock) : stock.eval_nodes(asked);
}
