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

static char *new_state(Holders *holders, topolane_state **state)
{
    char *error = NULL;
    if (holders->engine->state_new(holders->machine, state, &error) == TOPOLANE_STATUS_OK)
        return NULL;
    *state = NULL;
    return taken(holders->engine, error, "the engine gives no state");
}

char *holders_open(Holders *holders, const Engine *engine, const topolane_machine *machine, void (*free_map)(void *))
{
    *holders = (Holders){.engine = engine, .machine = machine, .free_map = free_map};
    return new_state(holders, &holders->empty);
}

static void free_holder(Holders *holders, Holder *holder)
{
    free(holder->nodes);
    free(holder->links);
    if (holder->map && holders->free_map)
        holders->free_map(holder->map);
}

void holders_close(Holders *holders)
{
    for (size_t index = 0; index < holders->count; index++)
        free_holder(holders, &holders->list[index]);
    free(holders->list);
    if (holders->engine) {
        holders->engine->state_free(holders->state);
        holders->engine->state_free(holders->empty);
    }
    *holders = (Holders){0};
}

/* The place of a job, or where it belongs. */
static size_t place_of(const Holders *holders, uint64_t job)
{
    size_t low = 0, high = holders->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (holders->list[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Holder *holders_find(Holders *holders, uint64_t job)
{
    size_t place = place_of(holders, job);
    return place < holders->count && holders->list[place].job == job ? &holders->list[place] : NULL;
}

/* Forgets the engine's state: it is made anew when it is needed. */
static void drop_state(Holders *holders)
{
    holders->engine->state_free(holders->state);
    holders->state = NULL;
    for (size_t index = 0; index < holders->count; index++)
        holders->list[index].is_held = false;
}

void holders_renew(Holders *holders)
{
    drop_state(holders);
    holders->engine->state_free(holders->empty);
    holders->empty = NULL;
}

/* Takes a job out of the engine's state. */
static void let_go(Holders *holders, Holder *holder)
{
    if (!holder->is_held)
        return;
    holder->is_held = false;
    if (holders->engine->state_release(holders->state, holder->job, NULL) != TOPOLANE_STATUS_OK)
        drop_state(holders);
}

Holder *holders_put(Holders *holders, Holder holder)
{
    Holder *known = holders_find(holders, holder.job);
    if (known) {
        let_go(holders, known);
        free_holder(holders, known);
        *known = holder;
        return known;
    }
    Holder *more = realloc(holders->list, (holders->count + 1) * sizeof *more);
    if (!more) {
        free_holder(holders, &holder);
        return NULL;
    }
    holders->list = more;
    size_t place = place_of(holders, holder.job);
    memmove(&more[place + 1], &more[place], (holders->count++ - place) * sizeof *more);
    more[place] = holder;
    return &more[place];
}

void holders_sweep(Holders *holders)
{
    size_t kept = 0;
    for (size_t index = 0; index < holders->count; index++)
        if (!holders->list[index].is_seen)
            let_go(holders, &holders->list[index]);
    for (size_t index = 0; index < holders->count; index++) {
        Holder *holder = &holders->list[index];
        if (!holder->is_seen) {
            free_holder(holders, holder);
            continue;
        }
        holder->is_seen = false;
        holders->list[kept++] = *holder;
    }
    holders->count = kept;
}

static topolane_status hold(Holders *holders, Holder *holder, bool with_links, char **error)
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
    return holders->engine->state_hold(holders->state, &held, error);
}

static char *bring_in(Holders *holders, Holder *holder)
{
    char *error = NULL;
    topolane_status status = hold(holders, holder, true, &error);
    if (status == TOPOLANE_STATUS_BAD_INPUT && holder->link_count) {
        holders->engine->text_free(error);
        error = NULL;
        status = hold(holders, holder, false, &error);
    }
    holder->is_held = status == TOPOLANE_STATUS_OK;
    return holder->is_held ? NULL : taken(holders->engine, error, "the engine does not take a job that runs");
}

char *holders_apply(Holders *holders)
{
    char *error = NULL;
    if (!holders->empty)
        error = new_state(holders, &holders->empty);
    if (!error && !holders->state)
        error = new_state(holders, &holders->state);
    /* First out, then in: links that change hands are free in between. */
    for (size_t index = 0; !error && index < holders->count; index++)
        if (holders->list[index].is_gone)
            let_go(holders, &holders->list[index]);
    if (!error && !holders->state)
        error = new_state(holders, &holders->state);
    for (size_t index = 0; !error && index < holders->count; index++) {
        Holder *holder = &holders->list[index];
        if (!holder->is_gone && !holder->is_held && holder->node_count)
            error = bring_in(holders, holder);
    }
    if (error)
        drop_state(holders);
    return error;
}

bool holders_isolated(const Holders *holders)
{
    for (size_t index = 0; index < holders->count; index++)
        if (!holders->list[index].is_gone && holders->list[index].link_use == TOPOLANE_LINKS_ISOLATED)
            return true;
    return false;
}
