/* A plugin of Flux's job manager: jobs that were submitted later have the higher priority. */
#include <stddef.h>
#include <stdint.h>

#include <flux/core.h>
#include <flux/jobtap.h>

static int priority_of(flux_plugin_t *plugin, const char *topic, flux_plugin_arg_t *args, void *data)
{
    flux_jobid_t id;

    if (flux_plugin_arg_unpack(args, FLUX_PLUGIN_ARG_IN, "{s:I}", "id", &id) < 0)
        return -1;
    /* The upper bits of an id are milliseconds. */
    return flux_plugin_arg_pack(args, FLUX_PLUGIN_ARG_OUT, "{s:I}", "priority", (int64_t)(id >> 24));
}

int flux_plugin_init(flux_plugin_t *plugin)
{
    if (flux_plugin_add_handler(plugin, "job.state.priority", priority_of, NULL) < 0)
        return -1;
    return flux_plugin_add_handler(plugin, "job.priority.get", priority_of, NULL);
}
