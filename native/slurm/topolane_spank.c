/* Ranks in the order of the placement: a SPANK plugin (spank(7)).
 *
 * The driver writes "topolane: on node14,node[3,9]" as the comment of a job that it releases; Slurm itself
 * keeps node lists sorted. A batch script finds that order in TOPOLANE_NODELIST and TOPOLANE_HOSTFILE (a host
 * a rank); `srun --topolane-ranks` inside an allocation follows it, by the SLURM_HOSTFILE that srun reads.
 *
 * SLURM_HOSTFILE is not set for whole jobs: it overrides `srun -m` and upsets the srun of MPICH's mpiexec.
 * A job that has no such comment, or runs on other nodes than it names, is left alone: nothing here may
 * make a job fail.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

SPANK_PLUGIN(topolane, 1)

extern char **environ;

enum { MOST_PER_NODE = 65536 };

static char *script_file; /* in slurmstepd, for the batch script */
static int srun_file = -1; /* in srun, for itself */

typedef struct {
    char *order; /* the hosts of the placement, a hostlist */
    char *nodes; /* the same, as Slurm sorts them */
} Placement;

static const char *value(char **environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static void forget(Placement *placement)
{
    free(placement->order);
    free(placement->nodes);
    *placement = (Placement){0};
}

/* Whether both lists name the same hosts, each once. */
static bool same_hosts(const char *order, const char *nodes)
{
    hostlist_t ordered = slurm_hostlist_create(order), sorted = slurm_hostlist_create(nodes);
    bool same = ordered && sorted && slurm_hostlist_count(ordered) == slurm_hostlist_count(sorted);
    char *host;
    if (same) {
        slurm_hostlist_uniq(ordered);
        same = slurm_hostlist_count(ordered) == slurm_hostlist_count(sorted);
    }
    while (same && (host = slurm_hostlist_shift(ordered))) {
        same = slurm_hostlist_find(sorted, host) >= 0;
        free(host);
    }
    slurm_hostlist_destroy(ordered);
    slurm_hostlist_destroy(sorted);
    return same;
}

/* What follows "topolane: on " or "topolane: as asked on " in a comment, else NULL. */
static const char *hosts_in(const char *comment)
{
    static const char *const before[] = {"topolane: on ", "topolane: as asked on "};
    for (size_t i = 0; comment && i < sizeof before / sizeof *before; i++)
        if (strncmp(comment, before[i], strlen(before[i])) == 0)
            return comment + strlen(before[i]);
    return NULL;
}

/* What the driver says of a running job; false where it has said nothing that holds. */
static bool find_placement(uint32_t id, Placement *placement)
{
    job_info_msg_t *found = NULL;
    *placement = (Placement){0};
    if (slurm_load_job(&found, id, SHOW_ALL) != SLURM_SUCCESS || !found)
        return false;
    for (uint32_t i = 0; i < found->record_count; i++) {
        const slurm_job_info_t *job = &found->job_array[i];
        const char *hosts = hosts_in(job->comment);
        /* The parts of a heterogeneous job share their environment: one order cannot hold for all. */
        if (job->job_id != id || job->het_job_id || !job->nodes || !hosts)
            continue;
        placement->order = strndup(hosts, strcspn(hosts, " "));
        placement->nodes = strdup(job->nodes);
    }
    slurm_free_job_info_msg(found);
    if (placement->order && placement->nodes && same_hosts(placement->order, placement->nodes))
        return true;
    forget(placement);
    return false;
}

/* Of a list such as "2(x3),1" the number that stands for node `index`; 0 where there is none. */
static long counted(const char *list, int index)
{
    while (list && *list) {
        char *end;
        long count = strtol(list, &end, 10), times = 1;
        if (end == list)
            return 0;
        if (strncmp(end, "(x", 2) == 0) {
            times = strtol(end + 2, &end, 10);
            end += *end == ')';
        }
        if (index < times)
            return count;
        index -= (int)times;
        list = *end == ',' ? end + 1 : NULL;
    }
    return 0;
}

/* One line a rank: for each node in order as many as `per_node`, or, if that is 0, as the job's own tasks. */
static long write_round(FILE *file, const Placement *placement, char **environment, long per_node)
{
    hostlist_t order = slurm_hostlist_create(placement->order), nodes = slurm_hostlist_create(placement->nodes);
    /* Without a number of tasks SLURM_TASKS_PER_NODE counts cores, and srun starts a task a node. */
    const char *tasks = value(environment, "SLURM_NTASKS") ? value(environment, "SLURM_TASKS_PER_NODE") : NULL;
    long lines = 0;
    char *host;
    while ((host = slurm_hostlist_shift(order))) {
        long count = per_node ? per_node : tasks ? counted(tasks, slurm_hostlist_find(nodes, host)) : 1;
        for (long i = 0; i < count; i++, lines++)
            fprintf(file, "%s\n", host);
        free(host);
    }
    slurm_hostlist_destroy(order);
    slurm_hostlist_destroy(nodes);
    return lines;
}

/* Room is made for `fewest` lines: further rounds follow the first. */
static bool write_hosts(int descriptor, const Placement *placement, char **environment, long per_node,
                        long fewest)
{
    FILE *file = fdopen(descriptor, "w");
    long lines = 0, round;
    if (!file)
        return false;
    do {
        round = write_round(file, placement, environment, per_node);
        lines += round;
    } while (round && lines < fewest);
    return fclose(file) == 0 && lines > 0;
}

static long cores(const char *list)
{
    long sum = 0, count;
    for (int index = 0; (count = counted(list, index)) > 0; index++)
        sum += count;
    return sum;
}

/* In srun, before it lays out its tasks. The file is one of memory: nothing is left behind. */
static void follow(const Placement *placement, long per_node)
{
    char path[64];
    srun_file = memfd_create("topolane", MFD_CLOEXEC);
    /* srun refuses a file of fewer lines than tasks. */
    if (srun_file < 0 ||
        !write_hosts(dup(srun_file), placement, environ, per_node, cores(getenv("SLURM_JOB_CPUS_PER_NODE"))))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", srun_file);
    setenv("SLURM_HOSTFILE", path, 1);
    setenv("TOPOLANE_NODELIST", placement->order, 1);
}

static int asked(int unused, const char *argument, int remote)
{
    const char *id = getenv("SLURM_JOB_ID");
    char *end = NULL;
    long per_node = argument ? strtol(argument, &end, 10) : 0;
    Placement placement;
    (void)unused;
    if (remote || spank_context() != S_CTX_LOCAL || srun_file >= 0)
        return ESPANK_SUCCESS;
    if (argument && (end == argument || *end || per_node < 1 || per_node > MOST_PER_NODE))
        return ESPANK_BAD_ARG; /* srun says so */
    if (!id) {
        slurm_info("topolane: an srun that makes its own allocation keeps Slurm's order: use sbatch or salloc");
    } else if (!find_placement((uint32_t)strtoul(id, NULL, 10), &placement)) {
        slurm_info("topolane: job %s was given no order of nodes and keeps Slurm's", id);
    } else {
        follow(&placement, per_node);
        forget(&placement);
    }
    return ESPANK_SUCCESS;
}

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
    static struct spank_option option = {
        (char *)"topolane-ranks",
        (char *)"PER_NODE",
        (char *)"ranks in the order of the placement, PER_NODE on each node [as the job's tasks]",
        2,
        0,
        asked,
    };
    (void)count, (void)arguments;
    if (spank_context() == S_CTX_LOCAL || spank_context() == S_CTX_REMOTE)
        spank_option_register(spank, &option);
    return ESPANK_SUCCESS;
}

/* srun has read its file; what its tasks start must not look for it. */
int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
    (void)spank, (void)count, (void)arguments;
    if (srun_file >= 0) {
        unsetenv("SLURM_HOSTFILE");
        close(srun_file);
    }
    return ESPANK_SUCCESS;
}

/* A new file in the directory of the batch script, which is the job's own and goes with it. */
static bool write_beside(const char *script, const Placement *placement, char **environment)
{
    const char *slash = strrchr(script, '/');
    int descriptor;
    if (!slash || asprintf(&script_file, "%.*s/topolane-XXXXXX", (int)(slash - script), script) < 0) {
        script_file = NULL;
        return false;
    }
    descriptor = mkstemp(script_file);
    return descriptor >= 0 && write_hosts(descriptor, placement, environment, 0, 0);
}

/* As the job's user, before a batch script starts. */
int slurm_spank_user_init(spank_t spank, int count, char **arguments)
{
    uint32_t job, step;
    int words;
    char **command, **environment;
    Placement placement;
    (void)count, (void)arguments;
    if (spank_get_item(spank, S_JOB_STEPID, &step) || step != SLURM_BATCH_SCRIPT)
        return ESPANK_SUCCESS;
    /* Those of another job, where this one was submitted from inside it. */
    spank_unsetenv(spank, "TOPOLANE_NODELIST");
    spank_unsetenv(spank, "TOPOLANE_HOSTFILE");
    if (spank_get_item(spank, S_JOB_ID, &job) || spank_get_item(spank, S_JOB_ENV, &environment) ||
        spank_get_item(spank, S_JOB_ARGV, &words, &command) || words < 1 || !find_placement(job, &placement))
        return ESPANK_SUCCESS;
    if (write_beside(command[0], &placement, environment)) {
        spank_setenv(spank, "TOPOLANE_NODELIST", placement.order, 1);
        spank_setenv(spank, "TOPOLANE_HOSTFILE", script_file, 1);
    }
    forget(&placement);
    return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int count, char **arguments)
{
    (void)spank, (void)count, (void)arguments;
    if (script_file)
        unlink(script_file);
    free(script_file);
    script_file = NULL;
    return ESPANK_SUCCESS;
}
