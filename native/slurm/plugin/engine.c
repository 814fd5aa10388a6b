#define _GNU_SOURCE
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *sentence(const char *path, const char *what)
{
    char *text = NULL;
    return asprintf(&text, "%s: %s", path, what) < 0 ? strdup("no memory") : text;
}

char *engine_load(Engine *engine, const char *path)
{
    /* Never unload the library: threads and destructors of a Rust library could still run after dlclose. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return sentence("the engine cannot be loaded", dlerror());
    char *error = NULL;
#define FUNCTION(name)                                                                                              \
    engine->name = (__typeof__(engine->name))dlsym(library, "topolane_" #name);                                     \
    if (!engine->name && !error)                                                                                    \
        error = sentence(path, "this engine has no topolane_" #name);
    ENGINE_FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (!error) {
        uint32_t version = engine->api_version();
        if (version < TOPOLANE_API_VERSION || version / 1000 != TOPOLANE_API_VERSION / 1000)
            error = sentence(path, "this engine has another version of the interface than the plugin");
    }
    dlclose(library);
    return error;
}
