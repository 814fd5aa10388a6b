#define _GNU_SOURCE
#include "installed.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void folder_of(const void *address, char folder[PATH_MAX])
{
    Dl_info where;
    const char *path = address && dladdr(address, &where) && where.dli_fname ? where.dli_fname : "";
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 0, path);
}

void installed_folder(char folder[PATH_MAX])
{
    folder_of(dlsym(RTLD_DEFAULT, "slurm_error"), folder);
}

uint32_t release_in(void *plugin)
{
    const uint32_t *number = dlsym(plugin, "plugin_version");
    return number ? *number : 0;
}
