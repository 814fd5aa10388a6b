#define _GNU_SOURCE
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "driver.h"
#include "links.h"
#include "note.h"
#include "preemption.h"
#include "publish.h"
#include "reason.h"
#include "repeated.h"
#include "report.h"
#include "running.h"
#include "segments.h"
#include "stock.h"

/* Limits of a call: areas that it tries (each costs a stock evaluation), and different weights of nodes. */
enum { MOST_AREAS = 16, MOST_WEIGHTS = 8 };

typedef struct {
    topology_eval_t *asked;
    const job_details_t *details;
    Question question;
    uint64_t *gone;   /* jobs that are gone in the hypothesis, by slot; NULL for none */
    const job_record_t *grown; /* the running job that takes over this one's nodes; NULL if none, or if links do not matter */
    uint32_t grown_links; /* the use of links that the grown job keeps: TOPOLANE_LINKS_... */
    bool isolates;
    bool asked_stock; /* whether the stock evaluation was asked */
    const char *kind; /* why the engine found nothing */
    bool stock_disagreed; /* the stock evaluation rejected the policy's nodes, for example because of blocks or devices */
    uint32_t least; /* least number of nodes that the job accepts */
    uint32_t most;  /* most nodes that the job may have; UINT32_MAX for any number */
    uint32_t wanted;
} Call;

/* What happens when the engine has no answer for a call. */
typedef struct {
    uint64_t *counter; /* counts calls that stock Slurm decides for this reason */
    End end;
    Say line; /* the line in the log, once a minute */
} Without;
static const Without WITHOUT[] = {
    [NO_ENGINE] = {&counters.stock_inactive, END_INACTIVE, SAY_INACTIVE},
    [ENGINE_FAULT] = {&counters.stock_failed, END_FAILED, SAY_STOCK},
    [ENGINE_LATE] = {&counters.stock_slow, END_SLOW, SAY_STOCK},
    [SHARES_CORES] = {&counters.stock_oversubscribed, END_OVERSUBSCRIBED, SAY_OVERSUBSCRIBED},
};

/* Counts how a call ended, and answers with stock Slurm's choice. */
static int leave_to_stock(topology_eval_t *asked, uint64_t *counter)
{
    ++*counter;
    int code = stock_choose(asked);
    if (code == SLURM_SUCCESS && driver.is_active)
        links_none(asked->job_ptr); /* Links from an earlier answer do not apply to these nodes. */
    return code;
}

/* Publishes that the job waits for the engine. */
static void write_down_wait(const job_record_t *job, const Terms *terms, uint32_t wanted)
{
    time_t now = time(NULL);
    if (job->job_id && publish_is_due(job->job_id, now))
        publish_refused((Refused){.job = job->job_id,
                                  .policy = terms->policy->name,
                                  .rule = terms->rule,
                                  .min_bandwidth = terms->min_bandwidth,
                                  .refused = now,
                                  .kind = "no-engine",
                                  .wanted = wanted ? wanted : 1},
                        NULL, 0);
}

/* Makes the job wait like one that waits for better switches: a test whether it can start now fails; a test whether it
 * could ever run succeeds if stock Slurm has nodes for it. */
static int wait_without_engine(topology_eval_t *asked, const Terms *terms, Lack lack)
{
    job_record_t *job = asked->job_ptr;
    ++counters.held;
    say(SAY_HELD, "job %u waits for isolated nodes, because %s", job->job_id, note_reason(lack));
    note_waits(job, lack);
    write_down_wait(job, terms, asked->min_nodes);
    if (job->bit_flags & BACKFILL_TEST)
        return SLURM_ERROR;
    int code = stock_choose(asked);
    job->best_switch = false;
    return code;
}

/* Answers a call without the engine. A job that must wait for isolated nodes waits, except on a single node, which uses
 * no link. Any other job gets stock Slurm's choice; if it should have been isolated, a note says that
 * it is not. */
static int without_engine(topology_eval_t *asked, const Terms *terms, Lack lack, bool is_plan)
{
    job_record_t *job = asked->job_ptr;
    const Without *way = &WITHOUT[lack];
    if (!terms->policy->is_stock || lack != SHARES_CORES)
        report_end(way->end);
    if (terms->waits) {
        if (asked->min_nodes > 1 || running_grown_by(job) || stock_try(asked, asked->node_map, 1) != SLURM_SUCCESS)
            return wait_without_engine(asked, terms, lack);
        ++*way->counter;
        note_nothing(job);
        if (driver.is_active)
            links_none(job);
        return SLURM_SUCCESS;
    }
    if (!terms->policy->is_stock || lack != NO_ENGINE)
        say(way->line, "job %u: stock Slurm chooses its nodes, because %s%s%s", job->job_id, note_reason(lack),
            lack == NO_ENGINE && driver.why ? ": " : "", lack == NO_ENGINE && driver.why ? driver.why : "");
    int code = leave_to_stock(asked, way->counter);
    if (code == SLURM_SUCCESS && !is_plan && terms->policy->isolates && bit_set_count(asked->node_map) > 1)
        note_stock(job, lack);
    return code;
}

/* Runs the stock evaluation on some of the candidates. */
static bool stock_finds(Call *call, bitstr_t *among, uint32_t most)
{
    int code = stock_try(call->asked, among, most);
    call->asked_stock = true;
    return code == SLURM_SUCCESS;
}

/* Whether the job may share cores. Such jobs take turns on their cores, and the plugin does not know which job runs at
 * which time. */
static bool may_share_cores(const job_record_t *job)
{
    if (!job->part_ptr || !job->details)
        return true;
    uint16_t most = job->part_ptr->max_share & ~SHARED_FORCE;
    return most > 1 && ((job->part_ptr->max_share & SHARED_FORCE) || job->details->share_res == 1);
}

static void count_nodes(Call *call)
{
    const topology_eval_t *asked = call->asked;
    const job_details_t *details = call->details;
    call->least = asked->min_nodes ? asked->min_nodes : 1;
    call->most = asked->max_nodes && asked->max_nodes < NO_VAL - 16 ? asked->max_nodes : UINT32_MAX;
    if (details->num_tasks && !details->ntasks_per_node && call->most > details->num_tasks)
        call->most = details->num_tasks > call->least ? details->num_tasks : call->least;
    uint32_t most_cpus = 1;
    bitstr_t *candidates = call->question.candidates;
    bool needs_cpus = call->least < call->most && details->min_cpus != NO_VAL;
    for (bitoff_t node = needs_cpus ? bit_ffs(candidates) : -1; node >= 0; node = bit_ffs_from_bit(candidates, node + 1)) {
        const avail_res_t *has = asked->avail_res_array[node];
        if (has && has->avail_cpus > most_cpus)
            most_cpus = has->avail_cpus;
    }
    uint32_t by_cpus = !needs_cpus ? 1 : (details->min_cpus + most_cpus - 1) / most_cpus;
    call->wanted = call->least > asked->req_nodes ? call->least : asked->req_nodes;
    call->wanted = call->wanted > by_cpus ? call->wanted : by_cpus;
    call->wanted = call->wanted < call->most ? call->wanted : call->most;
}

/* Whether the request asks for more than a number of nodes, so that the stock evaluation must have a choice. */
static bool is_particular(const Call *call)
{
    const job_details_t *details = call->details;
    bool some = details->req_node_bitmap && (uint32_t)bit_set_count(details->req_node_bitmap) != call->wanted;
    bool other_segment = details->segment_size && !call->question.segment;
    return some || details->contiguous || other_segment || call->asked->job_ptr->req_switch;
}

static bool has_required(const Call *call, bitstr_t *nodes)
{
    bitstr_t *required = call->details->req_node_bitmap;
    return !required || bit_super_set(required, nodes);
}

/* Asks the policy for `nodes` nodes, and the stock evaluation for cores and devices on them. */
static Answer try_policy_among(Call *call, uint32_t nodes)
{
    Choice choice;
    Answer answer = choices_place(&call->question, nodes, &choice);
    /* Slurm assumes that all jobs that could be preempted are gone. But a job outside the chosen nodes will not be
     * preempted, so ask again with it present. */
    while (answer == CHOSEN && call->gone && preemption_spares(call->asked->job_ptr, choice.nodes, call->gone)) {
        choices_free(&choice);
        char *why = holders_without(&driver.holders, call->gone, &call->question.state);
        free(why);
        answer = why ? ENGINE_FAILED : choices_place(&call->question, nodes, &choice);
    }
    if (answer != CHOSEN) {
        if (answer == NO_PLACE)
            call->kind = choices_refused(&call->question);
        return answer;
    }
    bool agrees = has_required(call, choice.nodes) && stock_finds(call, choice.nodes, 0);
    if (agrees) {
        segments_store(call->asked->job_ptr, call->asked->node_map, call->question.segment);
        links_given(call->asked->job_ptr, &choice, call->asked->node_map, call->gone != NULL);
    }
    choices_free(&choice);
    call->stock_disagreed |= !agrees;
    return agrees ? CHOSEN : NO_PLACE;
}

/* Like try_policy_among, but if the policy does not isolate, tries areas whose links no isolated job uses, the largest
 * first. */
static Answer try_policy(Call *call, uint32_t nodes, bool is_guarded)
{
    if (call->isolates || !is_guarded || nodes == 1)
        return try_policy_among(call, nodes);
    topolane_areas *areas;
    Answer answer = choices_areas(&call->question, nodes, TOPOLANE_LINKS_SHARED, &areas);
    if (answer != CHOSEN)
        return answer;
    bitstr_t *candidates = call->question.candidates;
    size_t count = driver.engine.areas_count(areas);
    answer = NO_PLACE;
    for (size_t tried = 0; tried < count && tried < MOST_AREAS && answer == NO_PLACE; tried++) {
        bitstr_t *area = choices_area(areas, count - 1 - tried);
        call->question.candidates = area;
        answer = try_policy_among(call, nodes);
        FREE_NULL_BITMAP(area);
    }
    call->question.candidates = candidates;
    driver.engine.areas_free(areas);
    return answer;
}

/* Lets the stock evaluation choose inside an area. Isolated jobs try the smallest areas first, which leaves more to
 * other jobs; other jobs try the largest first, which offers the most choice. */
static Answer try_areas(Call *call)
{
    topolane_areas *areas;
    /* Try a single node first if one is enough: it uses no link. */
    if (call->least == 1 && stock_finds(call, call->question.candidates, 1))
        return CHOSEN;
    uint32_t least = call->least > 1 ? call->least : 2;
    uint32_t link_use = driver_links_of(call->question.terms.policy);
    Answer answer = choices_areas(&call->question, least, link_use, &areas);
    if (answer != CHOSEN)
        return answer;
    size_t count = driver.engine.areas_count(areas), tried = 0;
    bool found = false;
    for (size_t step = 0; step < count && !found && tried < MOST_AREAS; step++) {
        bitstr_t *area = choices_area(areas, call->isolates ? step : count - 1 - step);
        uint64_t cpus = 0;
        for (bitoff_t node = bit_ffs(area); node >= 0; node = bit_ffs_from_bit(area, node + 1))
            if (call->asked->avail_res_array[node])
                cpus += call->asked->avail_res_array[node]->avail_cpus;
        bool may_do = has_required(call, area) && (call->details->min_cpus == NO_VAL || cpus >= call->details->min_cpus);
        tried += may_do;
        found = may_do && stock_finds(call, area, 0);
        FREE_NULL_BITMAP(area);
    }
    driver.engine.areas_free(areas);
    return found ? CHOSEN : NO_PLACE;
}

/* Tries the policy's nodes. If the request is particular, or stock Slurm rejects these nodes, lets stock Slurm choose in
 * an area. */
static Answer try_inside(Call *call, bool is_guarded)
{
    Answer answer = NO_PLACE;
    bool is_particular_one = is_particular(call);
    uint32_t tries[3] = {call->wanted, (call->wanted + call->least) / 2, call->least};
    for (int index = 0; index < 3 && answer == NO_PLACE && !is_particular_one; index++)
        if (index == 0 || tries[index] < tries[index - 1])
            answer = try_policy(call, tries[index], is_guarded);
    if (answer == CHOSEN)
        ++counters.placed;
    if (answer != NO_PLACE || (!is_particular_one && !call->stock_disagreed && call->least == call->most))
        return answer;
    if (call->question.segment && !is_particular_one)
        return answer; /* The stock evaluation of a tree does not support segments. */
    if (!call->isolates && !is_guarded) {
        bool found = stock_finds(call, call->question.candidates, 0);
        counters.placed += found;
        return found ? CHOSEN : NO_PLACE;
    }
    answer = try_areas(call);
    if (answer == CHOSEN) {
        ++counters.in_area;
        links_none(call->asked->job_ptr);
    }
    return answer;
}

/* Publishes that the job waits, and why. Refusals in a hypothesis are not published. */
static void write_down(const Call *call)
{
    uint32_t job = call->asked->job_ptr->job_id;
    time_t now = time(NULL);
    if (call->gone || !job || !publish_is_due(job, now))
        return;
    size_t count = 0;
    uint32_t *candidates = driver_nodes(call->question.candidates, &count);
    if (candidates)
        publish_refused((Refused){.job = job,
                                  .policy = call->question.terms.policy->name,
                                  .rule = call->question.terms.rule,
                                  .min_bandwidth = call->question.terms.min_bandwidth,
                                  .refused = now,
                                  .kind = call->kind ? call->kind : "no-area",
                                  .wanted = call->wanted},
                        candidates, count);
    free(candidates);
}

/* Discards the engine's states after a failure. */
static void renew(void)
{
    free(holders_renew(&driver.holders));
}

/* Answers a call for which the engine failed or was too slow. */
static int failed(const Call *call, Answer answer)
{
    if (answer == ENGINE_FAILED)
        renew();
    Lack lack = answer == ENGINE_FAILED ? ENGINE_FAULT : ENGINE_LATE;
    return without_engine(call->asked, &call->question.terms, lack, call->gone != NULL);
}

/* Answers that the job can never be placed, with stock Slurm's reason for the user if it has one. */
static int never(topology_eval_t *asked, bitstr_t *candidates)
{
    int code = stock_try(asked, candidates, 0);
    return code == SLURM_SUCCESS ? SLURM_ERROR : code;
}

/* Answers that the job has no place now. If it has one on the empty machine, the answer is that of a job that waits for
 * better switches: a test whether it can start now fails; a test whether it could ever run succeeds. Backfill never
 * makes the latter test. */
static int refuse(Call *call, bitstr_t *candidates)
{
    topology_eval_t *asked = call->asked;
    ++counters.refused;
    write_down(call);
    if (!call->gone)
        reason_refused(asked->job_ptr, call->question.segment != 0);
    if (asked->job_ptr->bit_flags & BACKFILL_TEST) {
        if (!call->asked_stock && !call->grown && !call->details->req_node_bitmap)
            repeated_refused(asked, &call->question.terms, call->gone);
        return SLURM_ERROR;
    }
    bool could = call->question.policy == NULL || is_particular(call) || call->stock_disagreed || call->least != call->most;
    bool found = false;
    if (could)
        found = stock_finds(call, call->question.candidates, 0);
    else {
        Choice choice;
        call->question.state = driver.holders.empty;
        Answer answer = choices_place(&call->question, call->wanted, &choice);
        found = answer == CHOSEN && stock_finds(call, choice.nodes, 0);
        choices_free(&choice);
        if (answer == ENGINE_FAILED || answer == ENGINE_SLOW)
            return failed(call, answer);
    }
    int code = SLURM_SUCCESS;
    if (!found)
        code = never(asked, candidates);
    asked->job_ptr->best_switch = false;
    return code;
}

/* Tries nodes that the machine file does not name. On these, stock Slurm decides. */
static bool try_unknown(Call *call, bitstr_t *candidates)
{
    if (!bit_overlap_any(candidates, driver.unknown))
        return false;
    bitstr_t *required = call->details->req_node_bitmap, *among = bit_copy(candidates);
    if (!required || !bit_overlap_any(required, driver.unknown))
        bit_and(among, driver.unknown);
    /* The engine cannot protect links of these nodes, so a job that must wait for isolated nodes gets at most one of
     * them. */
    bool waits = call->question.terms.waits;
    bool found = (!waits || call->least == 1) && stock_finds(call, among, waits ? 1 : 0);
    FREE_NULL_BITMAP(among);
    if (found) {
        job_record_t *job = call->asked->job_ptr;
        ++counters.stock_unknown;
        report_end(END_UNKNOWN);
        say(SAY_UNKNOWN, "job %u got nodes that the machine file does not name", job->job_id);
        links_none(job);
        if (call->isolates && !call->gone && bit_set_count(call->asked->node_map) > 1)
            note_stock(job, UNNAMED_NODES);
    }
    return found;
}

/* Finds the next higher weight among the candidates. Returns false if there is none. */
static bool next_weight(bitstr_t *candidates, uint64_t *weight, bool is_first)
{
    uint64_t found = UINT64_MAX;
    bool any = false;
    for (bitoff_t node = bit_ffs(candidates); node >= 0; node = bit_ffs_from_bit(candidates, node + 1)) {
        uint64_t own = node_record_table_ptr[node]->sched_weight;
        if ((is_first || own > *weight) && own <= found) {
            found = own;
            any = true;
        }
    }
    *weight = found;
    return any;
}

static Answer try_among(Call *call, bool is_guarded)
{
    if (call->question.policy)
        return try_inside(call, is_guarded);
    Answer answer = try_areas(call);
    counters.kept_off += answer == CHOSEN;
    return answer;
}

/* Follows Slurm's rule of light nodes first: asks for the lightest nodes, then for these and the next heavier ones, and
 * so on. */
static Answer try_by_weight(Call *call, bool is_guarded)
{
    bitstr_t *all = call->question.candidates;
    uint64_t weight = 0;
    Answer answer = NO_PLACE;
    for (int step = 0; step < MOST_WEIGHTS && answer == NO_PLACE && next_weight(all, &weight, step == 0); step++) {
        bitstr_t *light = bit_copy(all);
        for (bitoff_t node = bit_ffs(light); node >= 0; node = bit_ffs_from_bit(light, node + 1))
            if (step < MOST_WEIGHTS - 1 && node_record_table_ptr[node]->sched_weight > weight)
                bit_clear(light, node);
        call->question.candidates = light;
        if ((uint32_t)bit_set_count(light) >= call->least)
            answer = try_among(call, is_guarded);
        FREE_NULL_BITMAP(light);
    }
    call->question.candidates = all;
    return answer;
}

/* Finds the areas in which a job may lie with the job that grows by it. */
static Answer grown_areas(Call *call, topolane_areas **areas)
{
    const uint64_t *gone = call->gone;
    uint64_t *without = calloc(driver.holders.words + 1, sizeof *without);
    if (without && gone)
        memcpy(without, gone, driver.holders.words * sizeof *without);
    uint32_t slot = holders_find(&driver.holders, call->grown->job_id);
    if (without && slot != NO_SLOT)
        slot_set(without, slot);
    Question question = call->question;
    char *why = without ? holders_without(&driver.holders, without, &question.state) : strdup("no memory");
    Answer answer = ENGINE_FAILED;
    if (!why) {
        question.candidates = bit_copy(call->question.candidates);
        bit_or(question.candidates, call->grown->node_bitmap);
        bit_and_not(question.candidates, driver.unknown);
        uint32_t least = call->least + (uint32_t)bit_set_count(call->grown->node_bitmap);
        answer = choices_areas(&question, least, call->grown_links, areas);
        FREE_NULL_BITMAP(question.candidates);
        why = holders_without(&driver.holders, gone, &call->question.state);
        if (why && answer == CHOSEN)
            driver.engine.areas_free(*areas);
        answer = why ? ENGINE_FAILED : answer;
    }
    free(why);
    free(without);
    return answer;
}

/* Chooses so that the job that grows keeps its promise on all of its nodes. Slurm does not ask again when it grows. */
static Answer try_grown(Call *call, bool is_guarded)
{
    topolane_areas *areas;
    Answer answer = grown_areas(call, &areas);
    if (answer != CHOSEN)
        return answer;
    bitstr_t *candidates = call->question.candidates;
    size_t count = driver.engine.areas_count(areas);
    answer = NO_PLACE;
    for (size_t index = 0, tried = 0; index < count && tried < MOST_AREAS && answer == NO_PLACE; index++) {
        bitstr_t *area = choices_area(areas, index);
        if (bit_super_set(call->grown->node_bitmap, area)) {
            tried++;
            bit_and(area, candidates);
            call->question.candidates = area;
            answer = try_by_weight(call, is_guarded);
        }
        FREE_NULL_BITMAP(area);
    }
    call->question.candidates = candidates;
    driver.engine.areas_free(areas);
    return answer;
}

static int answer_call(Call *call, bool is_guarded)
{
    topology_eval_t *asked = call->asked;
    bitstr_t *candidates = bit_copy(asked->node_map);
    call->question.candidates = bit_copy(candidates);
    bit_and_not(call->question.candidates, driver.unknown);
    count_nodes(call);
    bitstr_t *required = call->details->req_node_bitmap;
    if (required && (uint32_t)bit_set_count(required) == call->wanted)
        bit_and(call->question.candidates, required); /* The job itself names all its nodes. */
    Answer answer;
    if (call->grown)
        answer = try_grown(call, is_guarded);
    else
        answer = driver_has_weights() ? try_by_weight(call, is_guarded) : try_among(call, is_guarded);
    int code = SLURM_SUCCESS;
    if (answer == ENGINE_FAILED || answer == ENGINE_SLOW)
        code = failed(call, answer);
    else if (answer == CHOSEN || call->grown || !try_unknown(call, candidates)) {
        report_end(END_DECIDED);
        if (!call->gone)
            note_nothing(asked->job_ptr);
        code = answer == CHOSEN ? SLURM_SUCCESS : refuse(call, candidates);
    }
    FREE_NULL_BITMAP(call->question.candidates);
    FREE_NULL_BITMAP(candidates);
    return code;
}

/* Sets the size of the segments that the policy keeps. Policies do not know how segments should lie to each other: if the job
 * says so, topology/block decides that, inside areas. Other stock plugins take no notice. The policies fill the blocks that
 * they enter, which is what --consolidate-segments asks for. Returns false if the job's segments cannot be spread. */
static bool take_segments(Call *call)
{
    const job_record_t *job = call->asked->job_ptr;
    call->question.segment = call->question.terms.policy->keeps_segments ? call->details->segment_size : 0;
    if (!call->question.segment)
        return true;
    bool has_blocks = !segments_are_stored_by(stock_now);
    if (has_blocks && (SPREADS_SEGMENTS(job) || CONSOLIDATES_SEGMENTS(job)))
        call->question.segment = 0;
    return has_blocks || !SPREADS_SEGMENTS(job);
}

static bool was_by_policy;

bool place_was_by_policy(void)
{
    return was_by_policy;
}

/* Determines whether the links of a job that grows by this one matter. They do not if it has ended in the hypothesis. */
static void find_grown(Call *call)
{
    const job_record_t *grown = running_grown_by(call->asked->job_ptr);
    uint32_t slot = grown ? holders_find(&driver.holders, grown->job_id) : NO_SLOT;
    if (slot == NO_SLOT || (call->gone && slot_test(call->gone, slot)))
        return;
    Terms terms = running_terms(grown);
    if (!terms.policy->isolates && call->isolates)
        terms = call->question.terms;
    call->grown_links = running_link_use(&terms);
    bool matters = terms.policy->isolates || (!terms.shares_links && holders_isolated(&driver.holders, call->gone));
    call->grown = matters ? grown : NULL;
}

/* Whether an isolated job grows by this one. It keeps its promise, so this one waits while the engine cannot answer. */
static bool is_for_isolated(const job_record_t *job)
{
    const job_record_t *grown = running_grown_by(job);
    return grown && running_terms(grown).policy->isolates;
}

/* Decides a call. Sets `is_plan` if the answer is for a time when some jobs are gone, so that the job does not start on
 * it. */
static int decide(topology_eval_t *asked, bool *is_plan)
{
    job_record_t *job = asked->job_ptr;
    if (!driver.is_opened || !job->details)
        return leave_to_stock(asked, &counters.stock_inactive);
    Terms terms = driver_terms(job);
    terms.waits = terms.waits || is_for_isolated(job);
    was_by_policy = !terms.policy->is_stock;
    if (!driver.is_active || !driver_map_nodes())
        return without_engine(asked, &terms, NO_ENGINE, job->bit_flags & BACKFILL_TEST);
    if (may_share_cores(job))
        return without_engine(asked, &terms, SHARES_CORES, job->bit_flags & BACKFILL_TEST);
    Call call = {.asked = asked, .details = job->details};
    call.question.terms = terms;
    call.question.policy = driver_policy(terms.policy);
    if (terms.was_refused) {
        ++counters.options_ignored;
        say(SAY_OPTION, "job %u: words of its --topolane that JobsMay or its policy does not allow are ignored", job->job_id);
    }
    call.question.job = job->job_id;
    if (!take_segments(&call)) {
        ++counters.refused;
        report_end(END_DECIDED);
        return ESLURM_REQUESTED_TOPO_CONFIG_UNAVAILABLE;
    }
    call.question.shares_nodes = !(job->details->whole_node & WHOLE_NODE_REQUIRED);
    call.isolates = call.question.terms.policy->isolates;
    driver_read_owners();
    driver_take_links_out();
    running_update();
    call.gone = running_gone(asked);
    *is_plan = call.gone != NULL;
    find_grown(&call);
    bool is_guarded = !call.question.terms.shares_links && holders_isolated(&driver.holders, call.gone);
    if (!call.question.policy && !call.grown && (!is_guarded || asked->max_nodes == 1)) {
        if (!*is_plan)
            note_nothing(job);
        return leave_to_stock(asked, &counters.stock);
    }
    if (choices_rest())
        return without_engine(asked, &terms, ENGINE_LATE, *is_plan);
    if (job->bit_flags & BACKFILL_TEST && repeated_refusal(asked, &call.question.terms, call.gone)) {
        ++counters.refused;
        ++counters.repeated;
        report_end(END_DECIDED);
        if (!call.gone)
            reason_refused(job, call.question.segment != 0);
        return SLURM_ERROR;
    }
    char *why = holders_without(&driver.holders, call.gone, &call.question.state);
    if (why) {
        say(SAY_STATE, "the running jobs do not fit the machine file: %s", why);
        free(why);
        return without_engine(asked, &terms, ENGINE_FAULT, *is_plan);
    }
    return answer_call(&call, is_guarded);
}

int place(topology_eval_t *asked)
{
    uint64_t began = steady_time(), of_stock = stock_time;
    ++counters.calls;
    if (driver.is_opened && !driver_can_read_jobs()) {
        ++counters.stock_inactive;
        report_end(END_INACTIVE);
        publish_called();
        return stock_now->eval_nodes(asked);
    }
    reason_write();
    asked->job_ptr->best_switch = true;
    bool is_plan = false;
    was_by_policy = false;
    int code = decide(asked, &is_plan);
    if (code == SLURM_SUCCESS && driver.is_active && !is_plan)
        running_answered(asked->job_ptr);
    publish_called();
    report_time(steady_time() - began - (stock_time - of_stock));
    return code;
}
