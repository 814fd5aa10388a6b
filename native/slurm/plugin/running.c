#include "running.h"

#include <stdlib.h>
#include <string.h>

#include "links.h"
#include "note.h"
#include "publish.h"
#include "report.h"

/* What is known of the job in a slot in addition to its holder. */
typedef struct {
    time_t end;      /* the end of its time limit */
    uint32_t size;   /* number of nodes that it holds, including nodes unknown to the machine */
    uint32_t inside; /* number of its nodes that were candidates in the last call */
} Stay;

static Stay *stays;
static size_t words;        /* words of 64 slots, as in driver.holders */
static uint64_t *full;      /* whole-node jobs that are gone, because all their nodes were candidates in the last call */
static uint64_t *shared;    /* jobs on parts of nodes or on nodes of a suspended job: their cores must be checked */
static uint64_t *seen;      /* jobs that are in the list of jobs */
static uint64_t *gone;      /* jobs that are gone in the hypothesis of this call */
static uint64_t *paused;    /* suspended jobs: Slurm offers their cores, but they return to their nodes and links */
static uint32_t *owner;     /* by node: slot + 1 of its whole-node job */
static bitstr_t *last;      /* candidates of the last call */
static bitstr_t *held;      /* nodes of all jobs */
static bitstr_t *idle_before; /* idle nodes when the list of jobs was read */
static time_t read_at;      /* when the list of jobs was read */
static uint32_t answered;   /* the last job that got an answer */
static bool lacks_links; /* the file of links lacks a job that holds nodes */
static bool are_several;    /* other jobs may have started too: parts of a heterogeneous job, tasks of an array */

void running_answered(const job_record_t *job)
{
    are_several = are_several || job->het_job_id || job->array_recs || (answered && answered != job->job_id);
    answered = job->job_id;
}

void running_forget(void)
{
    FREE_NULL_BITMAP(idle_before);
    FREE_NULL_BITMAP(held);
    FREE_NULL_BITMAP(last);
    uint64_t **sets[] = {&full, &shared, &seen, &gone, &paused};
    for (size_t index = 0; index < sizeof sets / sizeof *sets; index++) {
        free(*sets[index]);
        *sets[index] = NULL;
    }
    free(stays);
    free(owner);
    stays = NULL;
    owner = NULL;
    words = 0;
    read_at = 0;
    answered = 0;
    Holders *holders = &driver.holders;
    for (uint32_t slot = 0; (slot = slot_next(holders->there, holders->words, slot)) != NO_SLOT; slot++) {
        publish_gone(holders->list[slot].job);
        holders_remove(holders, slot);
    }
}

/* Allocates the arrays for the present numbers of slots and nodes. */
static bool make_room(void)
{
    size_t more = driver.holders.words;
    if (!owner)
        owner = calloc((size_t)node_record_count + 1, sizeof *owner);
    if (!last)
        last = bit_alloc(node_record_count);
    if (words == more)
        return owner != NULL;
    Stay *wider = realloc(stays, 64 * more * sizeof *wider);
    stays = wider ? wider : stays;
    bool is_wide = wider != NULL;
    uint64_t **sets[] = {&full, &shared, &seen, &gone, &paused};
    for (size_t index = 0; is_wide && index < sizeof sets / sizeof *sets; index++) {
        uint64_t *set = realloc(*sets[index], more * sizeof *set);
        is_wide = set != NULL;
        if (set) {
            memset(set + words, 0, (more - words) * sizeof *set);
            *sets[index] = set;
        }
    }
    words = is_wide ? more : words;
    return is_wide && owner;
}

/* The nodes that a job holds; NULL for none. While a job ends, it gives nodes back one by one, unless it keeps them until
 * it starts again. */
static bitstr_t *nodes_of(const job_record_t *job)
{
    if (IS_JOB_COMPLETING(job))
        return job->node_bitmap_cg && !KEEPS_NODES(job) ? job->node_bitmap_cg : job->node_bitmap;
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

/* The links that a job was given. Slurm asks about a task under the number of its array, and gives the task its own
 * number when it starts. */
static const Owned *given(const job_record_t *job, const uint32_t *nodes, size_t count)
{
    const Owned *owned = owners_find(&driver.owners, job->job_id);
    if (owned || !job->array_job_id || job->array_job_id == job->job_id)
        return owned;
    owned = owners_find(&driver.owners, job->array_job_id);
    if (!owned || owned->node_count != count || !contains(owned->nodes, count, nodes, count))
        return NULL;
    Owned own = *owned;
    own.job = job->job_id;
    if (!owners_set(&driver.owners, &own))
        return NULL;
    owners_remove(&driver.owners, job->array_job_id);
    return owners_find(&driver.owners, job->job_id);
}

static uint32_t *copied(const uint32_t *numbers, size_t count)
{
    uint32_t *copy = count ? malloc(count * sizeof *copy) : NULL;
    if (copy)
        memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

uint32_t running_link_use(const Terms *terms)
{
    bool may_meet_all = !terms->policy->isolates && terms->shares_links;
    return may_meet_all ? TOPOLANE_LINKS_NONE : driver_links_of(terms->policy);
}

/* Whether the job has its nodes to itself. */
static bool has_whole_nodes(const job_record_t *job)
{
    return job->job_resrcs && job->job_resrcs->whole_node == WHOLE_NODE_REQUIRED;
}

/* Removes the job of a slot from its nodes. */
static void leave(uint32_t slot)
{
    bitstr_t *map = driver.holders.list[slot].map;
    for (bitoff_t node = bit_ffs(map); node >= 0 && !slot_test(shared, slot); node = bit_ffs_from_bit(map, node + 1))
        owner[node] = owner[node] == slot + 1 ? 0 : owner[node];
    slot_clear(full, slot);
    slot_clear(shared, slot);
    slot_clear(paused, slot);
}

/* Adds the job of a slot to its nodes. */
static void come(uint32_t slot, const job_record_t *job)
{
    bitstr_t *map = driver.holders.list[slot].map;
    bool is_shared = !has_whole_nodes(job);
    for (bitoff_t node = bit_ffs(map); node >= 0 && !is_shared; node = bit_ffs_from_bit(map, node + 1))
        is_shared = owner[node] && owner[node] != slot + 1;
    stays[slot] = (Stay){.end = job->end_time, .size = (uint32_t)bit_set_count(map)};
    slot_clear(full, slot);
    slot_clear(shared, slot);
    if (is_shared) {
        slot_set(shared, slot);
        return;
    }
    for (bitoff_t node = bit_ffs(map); node >= 0; node = bit_ffs_from_bit(map, node + 1))
        owner[node] = slot + 1;
    stays[slot].inside = (uint32_t)bit_overlap(map, last);
    if (stays[slot].inside == stays[slot].size)
        slot_set(full, slot);
}

static void set_paused(uint32_t slot, const job_record_t *job)
{
    if (IS_JOB_SUSPENDED(job))
        slot_set(paused, slot);
    else
        slot_clear(paused, slot);
}

Terms running_terms(const job_record_t *job)
{
    Terms terms = driver_terms(job);
    if (terms.policy->isolates && note_is_stock(job)) {
        terms.policy = driver.config.otherwise.policy;
        terms.rule = RULE_STOCK;
    }
    return terms;
}

const job_record_t *running_grown_by(const job_record_t *job)
{
    uint32_t number = job->details ? job->details->expanding_jobid : 0;
    const job_record_t *grown = number && number != job->job_id ? find_job_record(number) : NULL;
    bool holds = grown && (IS_JOB_RUNNING(grown) || IS_JOB_SUSPENDED(grown)) && grown->node_bitmap;
    return holds && bit_size(grown->node_bitmap) == node_record_count ? grown : NULL;
}

/* The nodes whose links a job claims; NULL if these are its own nodes alone. Slurm merges two jobs without a call, so the one
 * that grows has links between all nodes from the start of the other on. */
static bitstr_t *joined(const job_record_t *job, bitstr_t *map)
{
    const job_record_t *grown = running_grown_by(job);
    if (!grown)
        return NULL;
    bitstr_t *both = bit_copy(map);
    bit_or(both, grown->node_bitmap);
    return both;
}

/* Records what a job claims. Returns its slot, or NO_SLOT without memory. */
static uint32_t see_on(const job_record_t *job, bitstr_t *map)
{
    Terms terms = running_terms(job);
    uint32_t link_use = running_link_use(&terms);
    const job_record_t *grown = running_grown_by(job);
    if (grown && !terms.policy->isolates) {
        Terms of_grown = running_terms(grown);
        link_use = running_link_use(&of_grown);
    }
    Holders *holders = &driver.holders;
    uint32_t slot = holders_find(holders, job->job_id);
    if (slot != NO_SLOT) {
        const Holder *known = &holders->list[slot];
        if (known->link_use == link_use && known->policy == terms.policy->name && bit_equal(known->map, map)) {
            stays[slot].end = job->end_time;
            set_paused(slot, job);
            return slot;
        }
        leave(slot);
    }
    Holder holder = {.job = job->job_id, .policy = terms.policy->name, .link_use = link_use, .bandwidth_share = 1};
    holder.map = bit_copy(map);
    holder.nodes = driver_nodes(map, &holder.node_count);
    const Owned *owned = terms.policy->dedicates ? given(job, holder.nodes, holder.node_count) : NULL;
    if (owned && contains(owned->nodes, owned->node_count, holder.nodes, holder.node_count)) {
        holder.links = copied(owned->links, owned->link_count);
        holder.link_count = holder.links ? owned->link_count : 0;
        holder.bandwidth_share = owned->bandwidth_share;
        lacks_links = lacks_links || !owned->in_file;
    }
    publish_running((Published_Job){job->job_id, holder.policy, terms.rule, driver_link_use(link_use),
                                    holder.bandwidth_share});
    slot = holders_put(holders, holder);
    if (slot == NO_SLOT || !make_room()) {
        say(SAY_STATE, "no memory for job %u", job->job_id);
        return NO_SLOT;
    }
    come(slot, job);
    set_paused(slot, job);
    if (held)
        bit_or(held, map);
    return slot;
}

/* Records what a job holds. Returns its slot, or NO_SLOT if it holds nothing. */
static uint32_t see(const job_record_t *job)
{
    bitstr_t *map = nodes_of(job);
    if (!map || bit_size(map) != node_record_count || bit_ffs(map) < 0)
        return NO_SLOT;
    bitstr_t *both = joined(job, map);
    uint32_t slot = see_on(job, both ? both : map);
    FREE_NULL_BITMAP(both);
    return slot;
}

static int see_each(void *job, void *with)
{
    (void)with;
    uint32_t slot = see(job);
    if (slot != NO_SLOT)
        slot_set(seen, slot);
    return 0;
}

static void read_list(time_t now)
{
    Holders *holders = &driver.holders;
    if (words)
        memset(seen, 0, words * sizeof *seen);
    list_for_each_ro(job_list, see_each, NULL);
    for (uint32_t slot = 0; (slot = slot_next(holders->there, words, slot)) != NO_SLOT; slot++)
        if (!slot_test(seen, slot)) {
            publish_gone(holders->list[slot].job);
            leave(slot);
            holders_remove(holders, slot);
        }
    FREE_NULL_BITMAP(held);
    held = bit_alloc(node_record_count);
    for (uint32_t slot = 0; (slot = slot_next(holders->there, words, slot)) != NO_SLOT; slot++)
        bit_or(held, holders->list[slot].map);
    FREE_NULL_BITMAP(idle_before);
    idle_before = bit_copy(idle_node_bitmap);
    __atomic_store_n(&read_at, now, __ATOMIC_RELAXED);
}

/* Records the job that got the last answer, if it has started. Its nodes are no longer idle. */
static void see_answered(void)
{
    const job_record_t *job = answered ? find_job_record(answered) : NULL;
    uint32_t slot = job && held ? see(job) : NO_SLOT;
    if (slot == NO_SLOT || !idle_before)
        return;
    bitstr_t *map = driver.holders.list[slot].map;
    if (bit_size(idle_before) == bit_size(map))
        bit_and_not(idle_before, map);
}

bool running_is_old(void)
{
    return last_job_update >= __atomic_load_n(&read_at, __ATOMIC_RELAXED);
}

void running_look(void)
{
    if (make_room())
        read_list(time(NULL));
}

void running_update(void)
{
    time_t now = time(NULL);
    if (!make_room())
        return;
    see_answered();
    if (are_several || !idle_before || bit_size(idle_before) != bit_size(idle_node_bitmap) ||
        !bit_equal(idle_before, idle_node_bitmap) || (now != read_at && (last_job_update >= read_at || now < read_at)))
        read_list(now);
    if (lacks_links)
        links_held();
    lacks_links = false;
    answered = 0;
    are_several = false;
}

/* Whether on each of a job's nodes at least one of its cores is free. */
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

/* Updates for each whole-node job how many of its nodes are candidates, from the differences to the last call. */
static void count_inside(bitstr_t *candidates)
{
    for (size_t word = 0; word < map_words(candidates); word++) {
        uint64_t now = map_word(candidates, word), changed = now ^ map_word(last, word);
        for (; changed; changed &= changed - 1) {
            size_t node = 64 * word + (size_t)__builtin_ctzll(changed);
            if (node >= (size_t)node_record_count || !owner[node])
                continue;
            uint32_t slot = owner[node] - 1;
            Stay *stay = &stays[slot];
            stay->inside += now >> node % 64 & 1 ? 1 : -1;
            if (stay->inside == stay->size)
                slot_set(full, slot);
            else
                slot_clear(full, slot);
        }
    }
    bit_copybits(last, candidates);
}

/* Whether a job on parts of nodes is gone. Sets `is_old` if the list of jobs no longer matches slurmctld's. */
static bool is_part_gone(uint32_t slot, const topology_eval_t *asked, bool *is_old)
{
    const Holder *holder = &driver.holders.list[slot];
    if ((uint32_t)bit_overlap(holder->map, asked->node_map) != stays[slot].size)
        return false;
    const job_record_t *job = find_job_record((uint32_t)holder->job);
    bitstr_t *map = job ? nodes_of(job) : NULL;
    *is_old = *is_old || !map || !bit_equal(map, holder->map);
    return !map || cores_are_free(job, asked);
}

/* Determines the jobs that are gone. Returns whether the list of jobs is outdated. */
static bool find_gone(const topology_eval_t *asked)
{
    bool is_old = false;
    count_inside(asked->node_map);
    memcpy(gone, full, words * sizeof *gone);
    for (uint32_t slot = 0; (slot = slot_next(shared, words, slot)) != NO_SLOT; slot++)
        if (is_part_gone(slot, asked, &is_old))
            slot_set(gone, slot);
    for (size_t word = 0; word < words; word++)
        gone[word] &= ~paused[word];
    return is_old;
}

uint64_t *running_gone(const topology_eval_t *asked)
{
    if (!held || !words || words != driver.holders.words || bit_size(held) != bit_size(asked->node_map) || !bit_overlap_any(held, asked->node_map))
        return NULL;
    if (find_gone(asked)) {
        read_list(time(NULL));
        find_gone(asked);
    }
    time_t until = 0;
    bool any = false;
    for (uint32_t slot = 0; (slot = slot_next(gone, words, slot)) != NO_SLOT; slot++) {
        any = true;
        until = stays[slot].end > until ? stays[slot].end : until;
    }
    /* Slurm removes jobs in the order of their ends, but only looks at jobs on nodes that the job may use. So all other
     * jobs that end by then are gone too. This does not hold if preemption can also remove jobs. */
    bool may_preempt = slurm_conf.preempt_type && strcmp(slurm_conf.preempt_type, "preempt/none");
    const uint64_t *there = driver.holders.there;
    for (uint32_t slot = 0; any && !may_preempt && (slot = slot_next(there, words, slot)) != NO_SLOT; slot++)
        if (stays[slot].end <= until && !slot_test(paused, slot))
            slot_set(gone, slot);
    return any ? gone : NULL;
}
