#define _GNU_SOURCE
#include "holders.h"

#include <stdlib.h>
#include <string.h>

/* A state that differs by at most NEAR jobs is changed; otherwise the one that was not used for longest. */
enum { NEAR = 4 };

static char *taken(const Engine *engine, char *error, const char *otherwise)
{
    char *copy = strdup(error ? error : otherwise);
    engine->text_free(error);
    return copy;
}

/* A state without jobs in which the first links of a list are out of service. */
static char *state_without(Holders *holders, const Links_Out *out, size_t links, topolane_state **state)
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

static char *new_state(Holders *holders, topolane_state **state)
{
    return state_without(holders, &holders->out, holders->out.reserved + holders->out.failed, state);
}

static char *new_empty(Holders *holders)
{
    return state_without(holders, &holders->out, holders->out.reserved, &holders->empty);
}

char *holders_open(Holders *holders, const Engine *engine, const topolane_machine *machine, void (*free_map)(void *))
{
    *holders = (Holders){.engine = engine, .machine = machine, .free_map = free_map};
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

/* Forgets a state; it is rebuilt when it is needed. */
static void drop(Holders *holders, Scene *scene)
{
    holders->engine->state_free(scene->state);
    scene->state = NULL;
    if (scene->held)
        memset(scene->held, 0, holders->words * sizeof *scene->held);
}

char *holders_renew(Holders *holders)
{
    holders->changes++;
    for (size_t index = 0; index < SCENES; index++)
        drop(holders, &holders->scenes[index]);
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
    char *why = state_without(holders, &out, out.reserved + out.failed, &tried);
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
    for (size_t index = 0; index < SCENES; index++) {
        if (holders->engine)
            drop(holders, &holders->scenes[index]);
        free(holders->scenes[index].held);
    }
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

/* Takes a job out of a state. */
static void release(Holders *holders, Scene *scene, uint32_t slot)
{
    const Holder *holder = &holders->list[slot];
    slot_clear(scene->held, slot);
    /* One without a node of the machine holds nothing. */
    if (holder->node_count && holders->engine->state_release(scene->state, holder->job, NULL) != TOPOLANE_STATUS_OK)
        drop(holders, scene);
}

/* Takes a job out of all states. */
static void let_go(Holders *holders, uint32_t slot)
{
    for (size_t index = 0; index < SCENES; index++) {
        Scene *scene = &holders->scenes[index];
        if (scene->state && slot_test(scene->held, slot))
            release(holders, scene, slot);
    }
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
    bool is_wide = widen(&holders->there, words, more) && widen(&holders->isolated, words, more);
    for (size_t index = 0; is_wide && index < SCENES; index++)
        is_wide = widen(&holders->scenes[index].held, words, more);
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
    if (holder.link_use == TOPOLANE_LINKS_ISOLATED)
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

static topolane_status hold(Holders *holders, topolane_state *state, const Holder *holder, bool with_links, char **error)
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
    return holders->engine->state_hold(state, &held, error);
}

static char *bring_in(Holders *holders, Scene *scene, uint32_t slot)
{
    const Holder *holder = &holders->list[slot];
    char *error = NULL;
    topolane_status status = TOPOLANE_STATUS_OK;
    if (holder->node_count)
        status = hold(holders, scene->state, holder, true, &error);
    if (status == TOPOLANE_STATUS_BAD_INPUT && holder->link_count) {
        holders->engine->text_free(error);
        error = NULL;
        status = hold(holders, scene->state, holder, false, &error);
    }
    if (status != TOPOLANE_STATUS_OK)
        return taken(holders->engine, error, "the engine does not take a job that runs");
    slot_set(scene->held, slot);
    return NULL;
}

static uint64_t wanted(const Holders *holders, const uint64_t *gone, size_t word)
{
    return holders->there[word] & (gone ? ~gone[word] : ~UINT64_C(0));
}

/* The state to change: one that is near, else the one that was not used for longest. */
static Scene *chosen(Holders *holders, const uint64_t *gone)
{
    Scene *nearest = NULL, *oldest = &holders->scenes[0];
    int least = NEAR + 1;
    for (size_t index = 0; index < SCENES; index++) {
        Scene *scene = &holders->scenes[index];
        oldest = scene->used < oldest->used ? scene : oldest;
        int differences = scene->state ? 0 : NEAR + 1;
        for (size_t word = 0; word < holders->words && differences < least; word++)
            differences += __builtin_popcountll(scene->held[word] ^ wanted(holders, gone, word));
        if (differences < least) {
            least = differences;
            nearest = scene;
        }
    }
    return nearest ? nearest : oldest;
}

char *holders_scene(Holders *holders, const uint64_t *gone, topolane_state **state)
{
    Scene *scene = chosen(holders, gone);
    char *error = scene->state ? NULL : new_state(holders, &scene->state);
    scene->used = ++holders->moment;
    /* First out, then in: links that change hands are free in between. */
    for (size_t word = 0; !error && word < holders->words; word++)
        for (uint64_t out = scene->held[word] & ~wanted(holders, gone, word); out && scene->state; out &= out - 1)
            release(holders, scene, (uint32_t)(64 * word) + (uint32_t)__builtin_ctzll(out));
    if (!error && !scene->state)
        error = new_state(holders, &scene->state);
    for (size_t word = 0; !error && word < holders->words; word++)
        for (uint64_t in = wanted(holders, gone, word) & ~scene->held[word]; in && !error; in &= in - 1) {
            uint32_t slot = (uint32_t)(64 * word) + (uint32_t)__builtin_ctzll(in);
            error = bring_in(holders, scene, slot);
        }
    *state = scene->state;
    if (error)
        drop(holders, scene);
    return error;
}

bool holders_isolated(const Holders *holders, const uint64_t *gone)
{
    for (size_t word = 0; word < holders->words; word++)
        if (holders->isolated[word] & wanted(holders, gone, word))
            return true;
    return false;
}
