/* `sbatch --topolane=...`, also for srun and salloc: a SPANK plugin (spank(7)).
 *
 * It only reads the option and puts it into the job, where the topology plugin in slurmctld finds it (plugin/option.h). What
 * cannot be read is refused before the job is submitted. On nodes it does nothing.
 */
#include <dlfcn.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../plugin/option.h"
#include "../shim/installed.h"

const char plugin_name[] = "topolane";
const char plugin_type[] = "spank";
const unsigned int spank_plugin_version = 1;
/* Slurm takes a SPANK plugin only with its own number of release, up to the second part. */
unsigned int plugin_version = SLURM_VERSION_NUMBER;

__attribute__((constructor)) static void take_release(void)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    installed_folder(folder);
    snprintf(path, sizeof path, "%s/topology_tree.so", folder);
    void *theirs = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (theirs && release_in(theirs))
        plugin_version = release_in(theirs);
    if (theirs)
        dlclose(theirs);
}

static char *given;

static int read_option(int value, const char *text, int remote)
{
    (void)value;
    if (remote)
        return 0;
    Option option;
    char *why = option_read(&option, text ? text : "");
    if (why) {
        slurm_error("%s", why);
        free(why);
        return -1;
    }
    free(given);
    given = strdup(text);
    return given ? 0 : -1;
}

static struct spank_option topolane_option = {
    .name = "topolane",
    .arginfo = "POLICY[,min-bandwidth=X][,share-links]",
    .usage = "placement policy of this job, where topolane.conf lets jobs choose",
    .has_arg = 1,
    .cb = read_option,
};

int slurm_spank_init(spank_t spank, int count, char **words)
{
    (void)count, (void)words;
    return spank_option_register(spank, &topolane_option) == ESPANK_SUCCESS ? 0 : -1;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **words)
{
    (void)count, (void)words;
    spank_context_t where = spank_context();
    if (!given || (where != S_CTX_LOCAL && where != S_CTX_ALLOCATOR))
        return 0;
    if (spank_job_control_setenv(spank, OPTION_VARIABLE, given, 1) == ESPANK_SUCCESS)
        return 0;
    slurm_error("--topolane: the option cannot be given to the job");
    return -1;
}
