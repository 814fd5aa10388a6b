#define _GNU_SOURCE
#include "layout.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "proven.h"
#include "release.h"

/* Weak: if a release lacks one, its check is skipped. */
#pragma weak job_record_create
#pragma weak part_record_create
#pragma weak find_part_record
#pragma weak slurmctld_config

enum { A_TIME = 1000000000 }; /* Slurm is younger. */

static Layout layout;
static bool are_new_compared, is_waiting_compared, is_running_compared;

/* Sizes agree if a field has moved, so fields are compared with what Slurm itself says: with what its functions write into a
 * new record, under which name or number its tables have a record, and what the record of a pointer begins with. Each
 * field that the plugin reads is one of these, or next to one, or has few values. */

/* Slurm fills these fields of a new job with values that are no zeros. */
static bool fits_new_job(void)
{
    job_record_t *job = job_record_create();
    if (!proven_record(job, sizeof *job))
        return false; /* not freed: the places of its parts are not known */
    job_details_t *details = job->details;
    time_t now = time(NULL), day = 24 * 60 * 60;
    bool fits = job->magic == JOB_MAGIC && job->array_task_id == NO_VAL && job->billable_tres == (double)NO_VAL &&
                job->site_factor == NICE_OFFSET && (int)job->requid == -1 && job->step_list &&
                proven_list(job->step_list) && proven_record(job->prio_factors, sizeof *job->prio_factors) &&
                proven_record(details, sizeof *details) && details->magic == DETAILS_MAGIC &&
                details->submit_time > now - day && details->submit_time < now + day;
    if (fits) {
        FREE_NULL_LIST(job->step_list);
        xfree(job->prio_factors);
        xfree(job->details);
        xfree(job);
    }
    return fits;
}

static bool fits_new_partition(void)
{
    part_record_t *part = part_record_create();
    bool fits = proven_record(part, sizeof *part) && part->magic == PART_MAGIC && part->max_share == 1 &&
                part->priority_job_factor == 1 && part->priority_tier == 1;
    xfree(part); /* A new one has no parts. */
    return fits;
}

static bool fits_node(node_record_t *node, uint32_t index)
{
    return proven_record(node, sizeof *node) && node->magic == NODE_MAGIC && node->index == index && node->name &&
           proven_text(node->name) && find_node_record(node->name) == node && proven_text(node->reason) &&
           proven_text(node->resv_name) && proven_text(node->version) &&
           (!node->tres_cnt || proven_size(node->tres_cnt) >= TRES_ARRAY_TOTAL_CNT * sizeof *node->tres_cnt) &&
           (!node->slurmd_start_time || node->slurmd_start_time > A_TIME) && node->tot_sockets >= 1 &&
           node->tot_cores >= node->tot_sockets && node->tot_cores <= node->tot_sockets * node->cores;
}

static bool fits_partition(part_record_t *part)
{
    return proven_record(part, sizeof *part) && part->magic == PART_MAGIC && part->name && proven_text(part->name) &&
           (!find_part_record || find_part_record(part->name) == part) && proven_map(part->node_bitmap) &&
           proven_text(part->qos_char);
}

static bool fits_details(const job_details_t *details)
{
    return proven_record(details, sizeof *details) && details->magic == DETAILS_MAGIC &&
           proven_text(details->cpu_bind) && proven_map(details->exc_node_bitmap) && proven_text(details->features) &&
           (!details->mc_ptr || proven_record(details->mc_ptr, sizeof *details->mc_ptr)) &&
           proven_text(details->mem_bind) && proven_text(details->qos_req) && proven_map(details->req_node_bitmap) &&
           proven_text(details->req_nodes) && proven_text(details->std_err) &&
           proven_text(details->submit_line) && details->submit_time > 0 && proven_text(details->work_dir);
}

static bool fits_resources(const job_resources_t *resources)
{
    return proven_record(resources, sizeof *resources) && proven_map(resources->core_bitmap) &&
           proven_map(resources->node_bitmap);
}

static bool fits_environment(const job_record_t *job)
{
    if (!job->spank_job_env_size)
        return true;
    size_t size = proven_size(job->spank_job_env), texts = job->spank_job_env_size;
    bool fits = size / sizeof *job->spank_job_env >= texts;
    for (size_t index = 0; index < texts && fits; index++)
        fits = proven_text(job->spank_job_env[index]);
    return fits;
}

static bool fits_texts(const job_record_t *job)
{
    const char *texts[] = {job->account, job->batch_host, job->burst_buffer, job->comment, job->het_job_id_set, job->name,
                           job->network, job->nodes, job->partition, job->resv_name, job->state_desc, job->system_comment,
                           job->tres_per_node, job->tres_req_str, job->tres_fmt_req_str, job->wckey};
    bool fit = true;
    for (size_t index = 0; index < sizeof texts / sizeof *texts && fit; index++)
        fit = proven_text(texts[index]);
    return fit;
}

/* What holds for each job of slurmctld, whatever its user asks for. The record has the right size. */
static bool fits_job(job_record_t *job)
{
    bool is_running = IS_JOB_RUNNING(job), is_task = job->array_job_id;
    unsigned char best_switch;
    memcpy(&best_switch, &job->best_switch, sizeof best_switch);
    return job->magic == JOB_MAGIC && find_job_record(job->job_id) == job && (job->job_state & JOB_STATE_BASE) < JOB_END &&
           (!job->details || fits_details(job->details)) && (!job->part_ptr || fits_partition(job->part_ptr)) &&
           (!job->job_resrcs || fits_resources(job->job_resrcs)) && (is_task || job->array_task_id == NO_VAL) &&
           (!job->array_recs || (is_task && proven_record(job->array_recs, sizeof *job->array_recs))) &&
           (job->het_job_id || (!job->het_job_id_set && !job->het_job_list)) && job->partition &&
           proven_list(job->step_list) && proven_list(job->gres_list_req) && proven_list(job->license_list) &&
           proven_list(job->part_ptr_list) && fits_texts(job) && proven_map(job->node_bitmap) &&
           proven_map(job->node_bitmap_cg) && (!is_running || (job->node_bitmap && job->nodes)) &&
           (!is_running || (job->start_time > 0 && job->end_time >= job->start_time)) &&
           (!job->prio_factors || proven_record(job->prio_factors, sizeof *job->prio_factors)) &&
           (!job->qos_ptr || proven_record(job->qos_ptr, sizeof *job->qos_ptr)) && fits_environment(job) &&
           (!job->tres_req_str || !job->details || proven_size(job->tres_req_cnt) >= TRES_ARRAY_TOTAL_CNT * sizeof(uint64_t)) &&
           best_switch <= 1;
}

/* Compares a job that waits and one that runs: fields of nodes are empty in the one, and what Slurm sets once is in both. */
static int compare(void *record, void *unused)
{
    (void)unused;
    if (xsize(record) != sizeof(job_record_t)) {
        layout = LAYOUT_DIFFERS;
        return -1;
    }
    job_record_t *job = record;
    bool *is_compared = IS_JOB_RUNNING(job) ? &is_running_compared : &is_waiting_compared;
    if (*is_compared)
        return 0;
    if (!fits_job(job))
        layout = LAYOUT_DIFFERS;
    else if (job->details && job->part_ptr) { /* A job that has ended may lack either. */
        *is_compared = true;
        layout = LAYOUT_FITS;
    }
    return layout == LAYOUT_DIFFERS || (is_waiting_compared && is_running_compared) ? -1 : 0;
}

static bool fits_new(void)
{
    if (!are_new_compared)
        are_new_compared = (!job_record_create || fits_new_job()) && (!part_record_create || fits_new_partition());
    return are_new_compared;
}

Layout layout_of_new(void)
{
    if (layout != LAYOUT_DIFFERS && !fits_new())
        layout = LAYOUT_DIFFERS;
    return layout;
}

Layout layout_compared(void)
{
    if (layout_of_new() == LAYOUT_DIFFERS || (is_waiting_compared && is_running_compared) || !job_list)
        return layout;
    int index = 0;
    while (index < node_record_count && !node_record_table_ptr[index])
        index++;
    if (index < node_record_count && !fits_node(node_record_table_ptr[index], (uint32_t)index))
        layout = LAYOUT_DIFFERS;
    else if (index < node_record_count)
        list_for_each_ro(job_list, compare, NULL);
    return layout;
}

time_t layout_boot_time(void)
{
    Dl_info where;
    const ElfW(Sym) *symbol = NULL;
    if (!&slurmctld_config || !dladdr1(&slurmctld_config, &where, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
        symbol->st_size != sizeof slurmctld_config)
        return 0;
    return slurmctld_config.boot_time > A_TIME ? slurmctld_config.boot_time : 0;
}
