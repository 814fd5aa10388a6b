#define _GNU_SOURCE
#include "running.h"

#include <stdlib.h>
#include <string.h>

#include "publish.h"
#include "report.h"

static bitstr_t *idle_before;  /* idle nodes when the list was read */
static bitstr_t *held;         /* nodes of all holders */
static time_t read_at;         /* when it was read */
static uint32_t answered;      /* the last job that got an answer */
static bool are_several;       /* it is a part of a heterogeneous job, whose parts start together */

void running_answered(const job_record_t *job)
{
    answered = job->job_id;
    are_several = are_several || job->het_job_id;
}

void running_forget(void)
{
    FREE_NULL_BITMAP(idle_before);
    FREE_NULL_BITMAP(held);
    read_at = 0;
    answered = 0;
    if (driver.holders.engine)
        holders_sweep(&driver.holders); /* Nothing is marked as seen. */
}

/* The nodes that a job holds; NULL for none. */
static bitstr_t *nodes_of(const job_record_t *job)
{
    if (IS_JOB_COMPLETING(job))
        return job->node_bitmap_cg ? job->node_bitmap_cg : job->node_bitmap;
    return IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job) ? job->node_bitmap : NULL;
}

static bool contains(const uint32_t *all, size_t count, const uint32_t *some, size_t others)
{
    size_t at = 0;
    for (size_t index = 0; index < others; index++) {
        while (at < count && all[at] < some[index])
            at++;
        if (at == count || all[at] != some[index])
            return false;
    }
    return true;
}

static uint32_t *copied(const uint32_t *numbers, size_t count)
{
    uint32_t *copy = count ? malloc(count * sizeof *copy) : NULL;
    if (copy)
        memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

static uint32_t link_use_of(const Terms *terms)
{
    if (terms->policy->isolates)
        return TOPOLANE_LINKS_ISOLATED;
    return terms->shares_links ? TOPOLANE_LINKS_NONE : TOPOLANE_LINKS_SHARED;
}

void running_may_start(const job_record_t *job, const Terms *terms)
{
    const Owned *owned = owners_find(&driver.owners, job->job_id);
    publish_running((Published_Job){job->job_id, terms->policy->name, driver_link_use(link_use_of(terms)),
                                    owned ? owned->bandwidth_share : 1});
}

/* Takes over what a job holds. */
static void see(const job_record_t *job)
{
    bitstr_t *map = nodes_of(job);
    if (!map || bit_size(map) != node_record_count || bit_ffs(map) < 0)
        return;
    Terms terms = driver_terms(job);
    uint32_t link_use = link_use_of(&terms);
    Holder *known = holders_find(&driver.holders, job->job_id);
    if (known && known->link_use == link_use && known->policy == terms.policy->name && bit_equal(known->map, map)) {
        known->end = job->end_time;
        known->is_seen = true;
        return;
    }
    Holder holder = {.job = job->job_id, .policy = terms.policy->name, .link_use = link_use, .end = job->end_time,
                     .is_seen = true};
    holder.map = bit_copy(map);
    holder.map_count = (size_t)bit_set_count(map);
    holder.nodes = driver_nodes(map, &holder.node_count);
    holder.bandwidth_share = 1;
    const Owned *owned = terms.policy->dedicates ? owners_find(&driver.owners, job->job_id) : NULL;
    if (owned && contains(owned->nodes, owned->node_count, holder.nodes, holder.node_count)) {
        holder.links = copied(owned->links, owned->link_count);
        holder.link_count = holder.links ? owned->link_count : 0;
        holder.bandwidth_share = owned->bandwidth_share;
    }
    publish_running((Published_Job){job->job_id, holder.policy, driver_link_use(link_use), holder.bandwidth_share});
    if (!holders_put(&driver.holders, holder))
        say(SAY_STATE, "no memory for job %u", job->job_id);
    else if (held)
        bit_or(held, map);
}

static int see_each(void *job, void *with)
{
    (void)with;
    see(job);
    return 0;
}

static void read_list(time_t now)
{
    FREE_NULL_BITMAP(held);
    held = bit_alloc(node_record_count);
    list_for_each_ro(job_list, see_each, NULL);
    for (size_t index = 0; index < driver.holders.count; index++)
        if (!driver.holders.list[index].is_seen)
            publish_gone(driver.holders.list[index].job);
    holders_sweep(&driver.holders);
    for (size_t index = 0; index < driver.holders.count; index++)
        bit_or(held, driver.holders.list[index].map);
    FREE_NULL_BITMAP(idle_before);
    idle_before = bit_copy(idle_node_bitmap);
    read_at = now;
}

/* Takes over the job that got the last answer, if it has started. Its nodes are not idle any more. */
static void see_answered(void)
{
    job_record_t *job = answered ? find_job_record(answered) : NULL;
    if (!job)
        return;
    see(job);
    Holder *holder = holders_find(&driver.holders, answered);
    if (!holder)
        return;
    holder->is_seen = false;
    if (idle_before && bit_size(idle_before) == bit_size(holder->map))
        bit_and_not(idle_before, holder->map);
}

void running_update(void)
{
    time_t now = time(NULL);
    see_answered();
    if (are_several || !idle_before || bit_size(idle_before) != bit_size(idle_node_bitmap) ||
        !bit_equal(idle_before, idle_node_bitmap) || (now != read_at && last_job_update >= read_at))
        read_list(now);
    answered = 0;
    are_several = false;
}

/* Whether every node of a job has one of its cores among the free ones. */
static bool cores_are_free(const job_record_t *job, const topology_eval_t *asked)
{
    const job_resources_t *resources = job->job_resrcs;
    if (!resources || !resources->core_bitmap || !resources->node_bitmap)
        return false;
    bitoff_t first = 0, cores = bit_size(resources->core_bitmap);
    bitoff_t last = bit_fls(resources->node_bitmap);
    for (bitoff_t node = bit_ffs(resources->node_bitmap); node >= 0 && node <= last; node++) {
        if (!bit_test(resources->node_bitmap, node))
            continue;
        if (!node_record_table_ptr[node])
            return false;
        uint16_t count = node_record_table_ptr[node]->tot_cores;
        bitstr_t *free_cores = asked->avail_core[node];
        bool any = false;
        for (bitoff_t core = 0; core < count && first + core < cores && !any; core++)
            any = bit_test(resources->core_bitmap, first + core) && free_cores && core < bit_size(free_cores) &&
                  bit_test(free_cores, core);
        if (!any)
            return false;
        first += count;
    }
    return true;
}

/* Marks the jobs all of whose nodes and cores are free. Returns whether the list of jobs is older than that. */
static bool mark_gone(const topology_eval_t *asked, bool *any, time_t *until)
{
    *any = false;
    *until = 0;
    bool is_old = false;
    for (size_t index = 0; index < driver.holders.count; index++) {
        Holder *holder = &driver.holders.list[index];
        holder->is_gone = false;
        if ((size_t)bit_overlap(holder->map, asked->node_map) != holder->map_count)
            continue;
        const job_record_t *job = find_job_record((uint32_t)holder->job);
        bitstr_t *map = job ? nodes_of(job) : NULL;
        is_old = is_old || !map || !bit_equal(map, holder->map);
        holder->is_gone = !map || cores_are_free(job, asked);
        *any = *any || holder->is_gone;
        if (holder->is_gone && holder->end > *until)
            *until = holder->end;
    }
    return is_old;
}

bool running_hypothesis(const topology_eval_t *asked)
{
    bool any = false;
    time_t until = 0;
    if (!held || !bit_overlap_any(held, asked->node_map)) {
        for (size_t index = 0; index < driver.holders.count; index++)
            driver.holders.list[index].is_gone = false;
        return false;
    }
    if (mark_gone(asked, &any, &until)) {
        read_list(time(NULL));
        mark_gone(asked, &any, &until);
    }
    /* Slurm takes away jobs in the order of their ends, but looks only at those on nodes that the job may use. Others that
     * end no later are gone as well; not so if jobs can also be taken away by preemption. */
    bool may_preempt = slurm_conf.preempt_type && strcmp(slurm_conf.preempt_type, "preempt/none");
    for (size_t index = 0; any && !may_preempt && index < driver.holders.count; index++)
        driver.holders.list[index].is_gone |= driver.holders.list[index].end <= until;
    return any;
}
