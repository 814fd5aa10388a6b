#define _GNU_SOURCE
#include "core.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "place.h"
#include "publish.h"

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
    SLURM_VERSION_NUMBER, open_core, close_core, took_control, driver_has_policies, place_with,
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

const Core *core_find(void)
{
    if (!strcmp(core_own_name(), "topolane"))
        return &topolane_core;
    char path[PATH_MAX];
    const char *slash = strrchr(own_path(), '/');
    int length = slash ? (int)(slash - own_path()) : 1;
    snprintf(path, sizeof path, "%.*s/topology_topolane.so", length, slash ? own_path() : ".");
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    const Core *core = library ? dlsym(library, "topolane_core") : NULL;
    if (core && core->version == SLURM_VERSION_NUMBER)
        return core;
    error("topolane: stock Slurm chooses all nodes of topology/%s: %s", core_own_name(),
          library ? "topology_topolane.so is of another build" : dlerror());
    return NULL;
}
