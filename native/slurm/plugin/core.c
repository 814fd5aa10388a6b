#define _GNU_SOURCE
#include "core.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "driver.h"
#include "place.h"
#include "publish.h"
#include "rank.h"

static unsigned users;
static const void *first;

static void open_core(void)
{
    if (!users++ && running_in_slurmctld() && &job_list && &idle_node_bitmap && &last_job_update && find_job_record)
        driver_open();
}

static void close_core(void)
{
    if (users && !--users) {
        driver_close();
        first = NULL;
    }
}

static void took_control(const void *context)
{
    first = first ? first : context;
    if (context != first)
        return;
    driver_took_control();
    publish_called(); /* Publish right after taking control whether the plugin is active. */
}

static int place_with(topology_eval_t *asked, const Stock *with)
{
    stock_now = with;
    return place(asked);
}

const Core topolane_core = {
    SLURM_VERSION_NUMBER, open_core, close_core, took_control, driver_has_policies, place_with, driver_nodes_changed, rank_nodes,
};

static const char *own_path(void)
{
    Dl_info where;
    return dladdr((void *)own_path, &where) && where.dli_fname ? where.dli_fname : "";
}

const char *core_own_name(void)
{
    static const char before[] = "topology_", after[] = ".so";
    static char name[32];
    const char *slash = strrchr(own_path(), '/'), *file = slash ? slash + 1 : own_path();
    size_t length = strlen(file), around = sizeof before - 1 + sizeof after - 1;
    if (length <= around || length - around >= sizeof name || strncmp(file, before, sizeof before - 1))
        return "topolane";
    snprintf(name, sizeof name, "%.*s", (int)(length - around), file + sizeof before - 1);
    return name;
}

/* The path of a file in this library's directory. */
static void put_neighbour(char path[PATH_MAX], const char *name)
{
    const char *slash = strrchr(own_path(), '/');
    int length = slash ? (int)(slash - own_path()) : 1;
    snprintf(path, PATH_MAX, "%.*s/%s", length, slash ? own_path() : ".", name);
}

bool core_has_other_names(void)
{
    char path[PATH_MAX], own[64];
    struct stat file, self;
    snprintf(own, sizeof own, "topology_%s.so", core_own_name());
    put_neighbour(path, "");
    DIR *directory = stat(own_path(), &self) ? NULL : opendir(path);
    bool is_linked = false;
    for (struct dirent *each; directory && !is_linked && (each = readdir(directory));) {
        if (strncmp(each->d_name, "topology_", 9) || !strcmp(each->d_name, own))
            continue;
        put_neighbour(path, each->d_name);
        is_linked = !stat(path, &file) && file.st_ino == self.st_ino && file.st_dev == self.st_dev;
    }
    if (directory)
        closedir(directory);
    if (is_linked)
        error("topolane: stock Slurm chooses all nodes of topology/%s: %s and %s are one file, and must be copies",
              core_own_name(), own_path(), path);
    return is_linked;
}

const Core *core_find(void)
{
    if (!strcmp(core_own_name(), "topolane"))
        return &topolane_core;
    char path[PATH_MAX];
    put_neighbour(path, "topology_topolane.so");
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    const Core *core = library ? dlsym(library, "topolane_core") : NULL;
    if (core && core->version == SLURM_VERSION_NUMBER)
        return core;
    error("topolane: stock Slurm chooses all nodes of topology/%s: %s", core_own_name(),
          library ? "topology_topolane.so is of another build" : dlerror());
    return NULL;
}
