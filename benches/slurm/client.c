/* Makes requests to slurmctld over libslurm for the benches of the plugin: one command per line on standard input, the
 * answer on standard output.
 *
 *   submit KEY=VALUE ...   a batch job that sleeps: "job N", or "no REASON"
 *   allocate KEY=VALUE ... the same without a script: nothing is launched, and only `complete` ends it
 *   cancel N, requeue N, complete N, reconfigure   "ok", or "no REASON"
 *   reset                  sets the statistics of the schedulers to zero: "ok"
 *   stats                  "stats NAME=NUMBER ..."
 *   states                 "states RUNNING COMPLETING PENDING", then a line "N" for each running job, then "end"
 *   held                   a line for each job that holds nodes, "JOB running|completing PARTITION START RESTARTS NODES" and
 *                          " NODE:CORES:DEVICES" for each of its nodes, then "end"
 *
 * Keys: partition nodes (N or N-M) minutes seconds name tasks per_node (tasks) cpus array switches nice requeue exclusive
 * contiguous gpus gpus_per_node w x. An unknown key ends the program with exit code 2: it is a mistake in the bench. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>

#include "src/common/bitstring.h"
#include "src/common/hostlist.h"
#include "src/common/job_resources.h"

enum { LINE = 65536, SCRIPT = 128 };

/* From 25.11 on, and for all calls from 26.05 on, Slurm's interface names jobs as steps. */
#define IS_SINCE(year, month) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(year, month, 0))
#if IS_SINCE(25, 11)
#define NUMBER_IN(answer) (answer)->step_id.job_id
#define ENDED(job) (&(slurm_step_id_t){.job_id = (job), .step_het_comp = NO_VAL, .step_id = NO_VAL})
#else
#define NUMBER_IN(answer) (answer)->job_id
#define ENDED(job) (job)
#endif
#if IS_SINCE(26, 5)
#define NAMED(job) (*ENDED(job))
#else
#define NAMED(job) (job)
#endif

static char *environment[] = {"PATH=/usr/bin:/bin", "SLURM_GET_USER_ENV=0", NULL};

static void refuse(void)
{
    printf("no %s\n", slurm_strerror(errno));
}

static void check(int code)
{
    if (code)
        refuse();
    else
        puts("ok");
}

/* One wish for a job. The text stays where it is until the job is submitted. */
static void set(job_desc_msg_t *job, const char *key, char *value, char *script)
{
    unsigned long number = strtoul(value, NULL, 10);
    if (!strcmp(key, "partition"))
        job->partition = value;
    else if (!strcmp(key, "nodes")) {
        char *to = strchr(value, '-');
        job->min_nodes = (uint32_t)number;
        job->max_nodes = to ? (uint32_t)strtoul(to + 1, NULL, 10) : job->min_nodes;
    } else if (!strcmp(key, "minutes"))
        job->time_limit = (uint32_t)number;
    else if (!strcmp(key, "seconds"))
        snprintf(script, SCRIPT, "#!/bin/sh\nexec sleep %s\n", value);
    else if (!strcmp(key, "name"))
        job->name = value;
    else if (!strcmp(key, "tasks"))
        job->num_tasks = job->min_cpus = (uint32_t)number;
    else if (!strcmp(key, "per_node"))
        job->ntasks_per_node = (uint16_t)number;
    else if (!strcmp(key, "cpus"))
        job->cpus_per_task = (uint16_t)number;
    else if (!strcmp(key, "array"))
        job->array_inx = value;
    else if (!strcmp(key, "switches")) {
        job->req_switch = (uint32_t)number;
        job->wait4switch = 5;
    } else if (!strcmp(key, "nice"))
        job->nice = NICE_OFFSET + (uint32_t)atoi(value);
    else if (!strcmp(key, "requeue"))
        job->requeue = (uint16_t)number;
    else if (!strcmp(key, "exclusive"))
        job->shared = number ? 0 : job->shared;
    else if (!strcmp(key, "contiguous"))
        job->contiguous = (uint16_t)number;
    else if (!strcmp(key, "gpus") || !strcmp(key, "gpus_per_node")) {
        char **where = strcmp(key, "gpus") ? &job->tres_per_node : &job->tres_per_job;
        static char wanted[2][64];
        char *text = wanted[where == &job->tres_per_node];
        snprintf(text, sizeof wanted[0], "gres/gpu:%lu", number);
        *where = text;
    } else if (!strcmp(key, "w"))
        job->req_nodes = value;
    else if (!strcmp(key, "x"))
        job->exc_nodes = value;
    else {
        fprintf(stderr, "there is no key '%s'\n", key);
        exit(2);
    }
}

static void submit(char *words, int has_script)
{
    static char script[SCRIPT];
    job_desc_msg_t job;
    slurm_init_job_desc_msg(&job);
    snprintf(script, sizeof script, "#!/bin/sh\nexec sleep 1\n");
    job.name = "sleep";
    job.user_id = job.group_id = 0;
    job.work_dir = "/tmp";
    job.std_out = job.std_err = "/dev/null";
    job.std_in = "/dev/null";
    job.environment = environment;
    job.env_size = sizeof environment / sizeof *environment - 1;
    job.requeue = 0;
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        if (!value) {
            fprintf(stderr, "'%s' is no KEY=VALUE\n", word);
            exit(2);
        }
        *value = 0;
        set(&job, word, value + 1, script);
    }
    if (has_script) {
        submit_response_msg_t *answer = NULL;
        job.script = script;
        if (slurm_submit_batch_job(&job, &answer)) {
            refuse();
            return;
        }
        printf("job %u\n", NUMBER_IN(answer));
        slurm_free_submit_response_response_msg(answer);
    } else {
        resource_allocation_response_msg_t *answer = NULL;
        if (slurm_allocate_resources(&job, &answer)) {
            refuse();
            return;
        }
        printf("job %u\n", NUMBER_IN(answer));
        slurm_free_resource_allocation_response_msg(answer);
    }
}

static void stats(void)
{
    stats_info_request_msg_t asked = {.command_id = STAT_COMMAND_GET};
    stats_info_response_msg_t *has = NULL;
    if (slurm_get_statistics(&has, &asked)) {
        refuse();
        return;
    }
    printf("stats started=%u completed=%u pending=%u running=%u cycles=%u sum=%llu last=%u depth=%u try=%u queue=%u "
           "table=%u main_cycles=%u main_sum=%llu active=%u\n",
           has->jobs_started, has->jobs_completed, has->jobs_pending, has->jobs_running, has->bf_cycle_counter,
           (unsigned long long)has->bf_cycle_sum, has->bf_cycle_last, has->bf_last_depth, has->bf_last_depth_try,
           has->bf_queue_len, has->bf_table_size, has->schedule_cycle_counter,
           (unsigned long long)has->schedule_cycle_sum, has->bf_active);
    /* The answer is not freed, because it is small and this program does not run for long. */
}

static void reset(void)
{
    stats_info_request_msg_t asked = {.command_id = STAT_COMMAND_RESET};
    check(slurm_reset_statistics(&asked));
}

static int holds(const job_info_t *job)
{
    uint32_t state = job->job_state & JOB_STATE_BASE;
    return state == JOB_RUNNING || state == JOB_SUSPENDED || (job->job_state & JOB_COMPLETING);
}

static void states(void)
{
    job_info_msg_t *jobs = NULL;
    if (slurm_load_jobs(0, &jobs, SHOW_ALL)) {
        refuse();
        return;
    }
    unsigned running = 0, completing = 0, pending = 0;
    for (uint32_t index = 0; index < jobs->record_count; index++) {
        const job_info_t *job = &jobs->job_array[index];
        uint32_t state = job->job_state & JOB_STATE_BASE;
        running += state == JOB_RUNNING;
        completing += (job->job_state & JOB_COMPLETING) != 0;
        pending += state == JOB_PENDING;
    }
    printf("states %u %u %u\n", running, completing, pending);
    for (uint32_t index = 0; index < jobs->record_count; index++)
        if ((jobs->job_array[index].job_state & JOB_STATE_BASE) == JOB_RUNNING)
            printf("%u\n", jobs->job_array[index].job_id);
    puts("end");
    slurm_free_job_info_msg(jobs);
}

/* The cores and devices of a job on each of its nodes: " NODE:CORES:DEVICES", cores such as 0,1,8. */
static void on_nodes(const job_info_t *job)
{
    const job_resources_t *has = job->job_resrcs;
    if (!has || !has->nodes || !has->core_bitmap)
        return;
    hostlist_t *hosts = slurm_hostlist_create(has->nodes);
    bitoff_t first = 0;
    uint32_t kind = 0, of_kind = 0;
    for (uint32_t node = 0; node < has->nhosts; node++) {
        char *name = slurm_hostlist_shift(hosts);
        bitoff_t cores = has->sockets_per_node[kind] * has->cores_per_socket[kind];
        printf(" %s:", name);
        for (bitoff_t core = 0, many = 0; core < cores; core++)
            if (bit_test(has->core_bitmap, first + core))
                printf("%s%" PRId64, many++ ? "," : "", (int64_t)core);
        printf(":%s", node < job->gres_detail_cnt && job->gres_detail_str[node] ? job->gres_detail_str[node] : "");
        free(name);
        first += cores;
        if (++of_kind == has->sock_core_rep_count[kind]) {
            of_kind = 0;
            kind++;
        }
    }
    slurm_hostlist_destroy(hosts);
}

static void held(void)
{
    job_info_msg_t *jobs = NULL;
    if (slurm_load_jobs(0, &jobs, SHOW_ALL | SHOW_DETAIL)) {
        refuse();
        return;
    }
    for (uint32_t index = 0; index < jobs->record_count; index++) {
        const job_info_t *job = &jobs->job_array[index];
        if (!holds(job) || !job->nodes || !*job->nodes)
            continue;
        const char *state = job->job_state & JOB_COMPLETING ? "completing" : "running";
        printf("%u %s %s %ld %u %s", job->job_id, state, job->partition, (long)job->start_time, job->restart_cnt,
               job->nodes);
        on_nodes(job);
        putchar('\n');
    }
    puts("end");
    slurm_free_job_info_msg(jobs);
}

static void answer(char *line)
{
    char *rest = strchr(line, ' ');
    if (rest)
        *rest++ = 0;
    uint32_t job = rest ? (uint32_t)strtoul(rest, NULL, 10) : 0;
    if (!strcmp(line, "submit"))
        submit(rest, 1);
    else if (!strcmp(line, "allocate"))
        submit(rest, 0);
    else if (!strcmp(line, "cancel"))
        check(slurm_kill_job(NAMED(job), SIGKILL, 0));
    else if (!strcmp(line, "requeue"))
        check(slurm_requeue(NAMED(job), 0));
    else if (!strcmp(line, "complete"))
        check(slurm_complete_job(ENDED(job), 0));
    else if (!strcmp(line, "reconfigure"))
        check(slurm_reconfigure());
    else if (!strcmp(line, "stats"))
        stats();
    else if (!strcmp(line, "reset"))
        reset();
    else if (!strcmp(line, "states"))
        states();
    else if (!strcmp(line, "held"))
        held();
    else {
        fprintf(stderr, "there is no command '%s'\n", line);
        exit(2);
    }
    fflush(stdout);
}

int main(void)
{
    static char line[LINE];
    slurm_init(NULL);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        answer(line);
    }
    slurm_fini();
    return 0;
}
