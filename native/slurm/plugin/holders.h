/* The jobs that hold nodes, and a state of the engine that holds those of them that are there in a hypothesis. Knows the
 * engine, not Slurm.
 *
 * The engine's state is changed by differences only: from one call to the next few jobs come or go.
 */
#ifndef TOPOLANE_HOLDERS_H
#define TOPOLANE_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "engine.h"

typedef struct {
    uint64_t job;
    uint32_t *nodes; /* of the machine, ascending */
    size_t node_count;
    const char *policy; /* its name */
    uint32_t link_use;  /* TOPOLANE_LINKS_... */
    uint32_t *links;
    size_t link_count;
    double bandwidth_share;
    time_t end;       /* when its time is over */
    void *map;        /* its nodes as the caller knows them */
    size_t map_count; /* how many these are, with those that the machine does not have */
    bool is_gone;     /* in the hypothesis of this call; what the caller sets */
    bool is_held;     /* in the engine's state */
    bool is_seen;
} Holder;

typedef struct {
    const Engine *engine;
    const topolane_machine *machine;
    topolane_state *state;
    topolane_state *empty; /* in which no job is */
    Holder *list;          /* by job, ascending */
    size_t count;
    void (*free_map)(void *map);
} Holders;

/* Returns NULL, or a sentence that the caller frees. */
char *holders_open(Holders *holders, const Engine *engine, const topolane_machine *machine, void (*free_map)(void *));

void holders_close(Holders *holders);

Holder *holders_find(Holders *holders, uint64_t job);

/* Takes over a job, with its arrays and its map; one with the same number is replaced. NULL without memory: then all that
 * was given is freed. */
Holder *holders_put(Holders *holders, Holder holder);

/* Removes the jobs that have not been marked as seen, and the marks. */
void holders_sweep(Holders *holders);

/* Brings the engine's state to what the jobs' `is_gone` say. Returns NULL, or a sentence; then the state is made anew at the
 * next call. A job whose links another one holds as well is held without them. */
char *holders_apply(Holders *holders);

/* After a failure of the engine: its states are of no use any more and are made anew at the next call. */
void holders_renew(Holders *holders);

/* Whether a job there is isolated. */
bool holders_isolated(const Holders *holders);

#endif
