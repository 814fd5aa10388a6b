#define _GNU_SOURCE
#include "holders.h"

#include <stdlib.h>
#include <string.h>

static char *taken(const Engine *engine, char *error, const char *otherwise)
{
    char *copy = strdup(error ? error : otherwise);
    engine->text_free(error);
    return copy;
}

/* A state without jobs in which the first links of a list are out of service. */
static char *state_with_out(Holders *holders, const Links_Out *out, size_t links, topolane_state **state)
{
    const Engine *engine = holders->engine;
    char *error = NULL;
    topolane_status status = engine->state_new(holders->machine, state, &error);
    if (status != TOPOLANE_STATUS_OK)
        *state = NULL;
    for (size_t index = 0; status == TOPOLANE_STATUS_OK && index < links; index++)
        status = engine->state_set_link(*state, out->links[index], false, &error);
    if (status == TOPOLANE_STATUS_OK)
        return NULL;
    engine->state_free(*state);
    *state = NULL;
    return taken(engine, error, "the engine gives no state");
}

static char *new_empty(Holders *holders)
{
    return state_with_out(holders, &holders->out, holders->out.reserved, &holders->empty);
}

char *holders_open(Holders *holders, const Engine *engine, const topolane_machine *machine, void (*free_map)(void *))
{
    *holders = (Holders){.engine = engine, .machine = machine, .free_map = free_map};
    size_t most = NODES_OF_HYPOTHESES / (engine->machine_nodes(machine) + 1);
    holders->then.most = most < LEAST_HYPOTHESES ? LEAST_HYPOTHESES : most < MOST_HYPOTHESES ? most : MOST_HYPOTHESES;
    return new_empty(holders);
}

static void free_holder(Holders *holders, Holder *holder)
{
    free(holder->nodes);
    free(holder->links);
    if (holder->map && holders->free_map)
        holders->free_map(holder->map);
    *holder = (Holder){0};
}

static void forget_hypotheses(Holders *holders)
{
    Hypotheses *then = &holders->then;
    for (size_t index = 0; index < MOST_HYPOTHESES; index++) {
        if (then->asked[index])
            holders->engine->state_free(then->states[index]);
        then->asked[index] = 0;
    }
    free(then->gone);
    then->gone = NULL;
}

/* Forgets the states; they are rebuilt when they are needed. */
static void drop(Holders *holders)
{
    holders->engine->state_free(holders->now);
    forget_hypotheses(holders);
    holders->now = NULL;
    if (holders->held)
        memset(holders->held, 0, holders->words * sizeof *holders->held);
}

char *holders_renew(Holders *holders)
{
    holders->changes++;
    drop(holders);
    holders->engine->state_free(holders->empty);
    return new_empty(holders);
}

char *holders_set_out(Holders *holders, Links_Out out)
{
    if (links_out_same(&out, &holders->out)) {
        links_out_free(&out);
        return NULL;
    }
    topolane_state *tried; /* The engine knows which links there are. */
    char *why = state_with_out(holders, &out, out.reserved + out.failed, &tried);
    holders->engine->state_free(tried);
    if (why) {
        links_out_free(&out);
        return why;
    }
    links_out_free(&holders->out);
    holders->out = out;
    return holders_renew(holders);
}

void holders_close(Holders *holders)
{
    for (uint32_t slot = 0; slot < 64 * holders->words; slot++)
        if (slot_test(holders->there, slot))
            free_holder(holders, &holders->list[slot]);
    if (holders->engine)
        drop(holders);
    free(holders->held);
    free(holders->list);
    free(holders->there);
    free(holders->isolated);
    free(holders->by_job);
    links_out_free(&holders->out);
    if (holders->engine)
        holders->engine->state_free(holders->empty);
    *holders = (Holders){0};
}

/* The place of a job in by_job, or where it belongs. */
static size_t place_of(const Holders *holders, uint64_t job)
{
    size_t low = 0, high = holders->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (holders->list[holders->by_job[middle]].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t holders_find(const Holders *holders, uint64_t job)
{
    size_t place = place_of(holders, job);
    bool is_there = place < holders->count && holders->list[holders->by_job[place]].job == job;
    return is_there ? holders->by_job[place] : NO_SLOT;
}

/* Takes a job out of the state. */
static void let_go(Holders *holders, uint32_t slot)
{
    const Holder *holder = &holders->list[slot];
    if (!holders->now || !slot_test(holders->held, slot))
        return;
    slot_clear(holders->held, slot);
    /* One without a node of the machine holds nothing. */
    if (holder->node_count && holders->engine->state_release(holders->now, holder->job, NULL) != TOPOLANE_STATUS_OK)
        drop(holders);
}

/* Makes an array of more words, the new ones zero. */
static bool widen(uint64_t **bits, size_t words, size_t more)
{
    uint64_t *wider = realloc(*bits, more * sizeof *wider);
    if (!wider)
        return false;
    memset(wider + words, 0, (more - words) * sizeof *wider);
    *bits = wider;
    return true;
}

/* Makes room for twice as many jobs. */
static bool grow(Holders *holders)
{
    size_t words = holders->words, more = words ? 2 * words : 4;
    bool is_wide = widen(&holders->there, words, more) && widen(&holders->isolated, words, more) && widen(&holders->held, words, more);
    Holder *list = is_wide ? realloc(holders->list, 64 * more * sizeof *list) : NULL;
    if (!list)
        return false;
    memset(list + 64 * words, 0, 64 * (more - words) * sizeof *list);
    holders->list = list;
    uint32_t *by_job = realloc(holders->by_job, 64 * more * sizeof *by_job);
    if (!by_job)
        return false;
    holders->by_job = by_job;
    holders->words = more;
    return true;
}

static uint32_t free_slot(Holders *holders)
{
    for (size_t word = 0; word < holders->words; word++)
        if (~holders->there[word])
            return (uint32_t)(64 * word) + (uint32_t)__builtin_ctzll(~holders->there[word]);
    size_t words = holders->words;
    return grow(holders) ? (uint32_t)(64 * words) : NO_SLOT;
}

uint32_t holders_put(Holders *holders, Holder holder)
{
    holders->changes++;
    uint32_t slot = holders_find(holders, holder.job);
    if (slot != NO_SLOT) {
        let_go(holders, slot);
        free_holder(holders, &holders->list[slot]);
    } else {
        slot = free_slot(holders);
        if (slot == NO_SLOT) {
            free_holder(holders, &holder);
            return NO_SLOT;
        }
        size_t place = place_of(holders, holder.job);
        uint32_t *by_job = holders->by_job;
        memmove(&by_job[place + 1], &by_job[place], (holders->count++ - place) * sizeof *by_job);
        by_job[place] = slot;
        slot_set(holders->there, slot);
    }
    holders->list[slot] = holder;
    slot_clear(holders->isolated, slot);
    if (holder.link_use == TOPOLANE_LINKS_ISOLATED || holder.link_use == TOPOLANE_LINKS_ISOLATED_GLOBAL)
        slot_set(holders->isolated, slot);
    return slot;
}

void holders_remove(Holders *holders, uint32_t slot)
{
    holders->changes++;
    let_go(holders, slot);
    size_t place = place_of(holders, holders->list[slot].job);
    uint32_t *by_job = holders->by_job;
    memmove(&by_job[place], &by_job[place + 1], (--holders->count - place) * sizeof *by_job);
    free_holder(holders, &holders->list[slot]);
    slot_clear(holders->there, slot);
    slot_clear(holders->isolated, slot);
}

static topolane_status hold(Holders *holders, const Holder *holder, bool with_links, char **error)
{
    topolane_held held = {
        .size = sizeof held,
        .id = holder->job,
        .nodes = holder->nodes,
        .node_count = holder->node_count,
        .links = with_links ? holder->links : NULL,
        .link_count = with_links ? holder->link_count : 0,
        .bandwidth_share = with_links && holder->link_count ? holder->bandwidth_share : 1,
        .link_use = holder->link_use,
        .shares_nodes = true, /* Slurm knows which nodes have room. */
    };
    return holders->engine->state_hold(holders->now, &held, error);
}

static char *bring_in(Holders *holders, uint32_t slot)
{
    const Holder *holder = &holders->list[slot];
    char *error = NULL;
    topolane_status status = TOPOLANE_STATUS_OK;
    if (holder->node_count)
        status = hold(holders, holder, true, &error);
    if (status == TOPOLANE_STATUS_BAD_INPUT && holder->link_count) {
        holders->engine->text_free(error);
        error = NULL;
        status = hold(holders, holder, false, &error);
    }
    if (status != TOPOLANE_STATUS_OK)
        return taken(holders->engine, error, "the engine does not take a job that runs");
    slot_set(holders->held, slot);
    return NULL;
}

static uint64_t wanted(const Holders *holders, const uint64_t *gone, size_t word)
{
    return holders->there[word] & (gone ? ~gone[word] : ~UINT64_C(0));
}

/* Brings the state up to date. */
static char *bring_all_in(Holders *holders)
{
    char *error = NULL;
    if (!holders->now)
        error = state_with_out(holders, &holders->out, holders->out.reserved + holders->out.failed, &holders->now);
    for (size_t word = 0; !error && word < holders->words; word++)
        for (uint64_t in = holders->there[word] & ~holders->held[word]; in && !error; in &= in - 1)
            error = bring_in(holders, (uint32_t)(64 * word) + (uint32_t)__builtin_ctzll(in));
    return error;
}

/* The jobs that are gone, as far as they are there. */
static uint64_t gone_of(const Holders *holders, const uint64_t *gone, size_t word)
{
    return gone[word] & holders->there[word];
}

static uint64_t sum_of_gone(const Holders *holders, const uint64_t *gone)
{
    uint64_t sum = 0;
    for (size_t word = 0; word < holders->words; word++)
        sum = (sum ^ gone_of(holders, gone, word)) * UINT64_C(0x9e3779b97f4a7c15) + (sum >> 29);
    return sum;
}

/* The number of jobs that are gone in a hypothesis; 0 if it lacks a job that is there in another one. */
static size_t common(const Holders *holders, const uint64_t *of, const uint64_t *gone)
{
    size_t count = 0;
    for (size_t word = 0; word < holders->words; word++) {
        if (of[word] & ~gone_of(holders, gone, word))
            return 0;
        count += (size_t)__builtin_popcountll(of[word]);
    }
    return count;
}

/* Where a hypothesis belongs: an unused place, or that of the one asked for the longest time ago. */
static size_t place_for(const Hypotheses *then)
{
    size_t place = 0;
    for (size_t index = 1; index < then->most; index++)
        if (then->asked[index] < then->asked[place])
            place = index;
    return place;
}

/* Asks the engine for the state without the jobs that are gone. It begins with the known state that lacks most of them. */
static char *new_hypothesis(Holders *holders, const uint64_t *gone, topolane_state **state)
{
    Hypotheses *then = &holders->then;
    size_t words = holders->words, most = 0;
    if (!then->gone)
        then->gone = calloc(then->most * words, sizeof *then->gone);
    uint64_t *jobs = malloc((holders->count + 1) * sizeof *jobs);
    if (!jobs || !then->gone) {
        free(jobs);
        return strdup("no memory");
    }
    topolane_state *base = holders->now;
    const uint64_t *without = NULL;
    for (size_t index = 0; index < then->most; index++) {
        size_t count = then->asked[index] ? common(holders, &then->gone[index * words], gone) : 0;
        if (count > most) {
            most = count;
            base = then->states[index];
            without = &then->gone[index * words];
        }
    }
    size_t count = 0;
    for (uint32_t slot = 0; (slot = slot_next(gone, words, slot)) != NO_SLOT; slot++)
        if (slot_test(holders->there, slot) && holders->list[slot].node_count && !(without && slot_test(without, slot)))
            jobs[count++] = holders->list[slot].job;
    char *error = NULL;
    topolane_status status = holders->engine->state_without(base, jobs, count, state, &error);
    free(jobs);
    if (status != TOPOLANE_STATUS_OK)
        return taken(holders->engine, error, "the engine gives no state without some jobs");
    size_t place = place_for(then);
    if (then->asked[place])
        holders->engine->state_free(then->states[place]);
    then->asked[place] = ++then->now;
    then->states[place] = *state;
    then->sums[place] = sum_of_gone(holders, gone);
    for (size_t word = 0; word < words; word++)
        then->gone[place * words + word] = gone_of(holders, gone, word);
    return NULL;
}

/* The hypothesis with the same jobs gone, if it is known. */
static topolane_state *known_hypothesis(Holders *holders, const uint64_t *gone)
{
    Hypotheses *then = &holders->then;
    uint64_t sum = sum_of_gone(holders, gone);
    for (size_t index = 0; then->gone && index < then->most; index++) {
        if (then->sums[index] != sum || !then->asked[index])
            continue;
        bool is_same = true;
        for (size_t word = 0; word < holders->words && is_same; word++)
            is_same = then->gone[index * holders->words + word] == gone_of(holders, gone, word);
        if (is_same) {
            then->asked[index] = ++then->now;
            return then->states[index];
        }
    }
    return NULL;
}

char *holders_without(Holders *holders, const uint64_t *gone, topolane_state **state)
{
    Hypotheses *then = &holders->then;
    if (then->changes != holders->changes)
        forget_hypotheses(holders);
    then->changes = holders->changes;
    *state = gone ? known_hypothesis(holders, gone) : NULL;
    if (*state)
        return NULL;
    char *error = bring_all_in(holders);
    if (!error && gone)
        error = new_hypothesis(holders, gone, state);
    else if (!error)
        *state = holders->now;
    if (error) {
        drop(holders);
        *state = NULL;
    }
    return error;
}

bool holders_isolated(const Holders *holders, const uint64_t *gone)
{
    for (size_t word = 0; word < holders->words; word++)
        if (holders->isolated[word] & wanted(holders, gone, word))
            return true;
    return false;
}
