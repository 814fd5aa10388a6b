/* The jobs that hold nodes, and states of the engine in which those of them are that are there in a hypothesis. Knows the engine,
 * not Slurm.
 *
 * Each job has a slot, and sets of jobs are bits by slot. Slurm asks about few different hypotheses again and again: as it is
 * now, then with more and more jobs ended, and then the same for the next job. So several states of the engine are kept. Each is
 * changed by differences only.
 */
#ifndef TOPOLANE_HOLDERS_H
#define TOPOLANE_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "links_out.h"

typedef struct {
    uint64_t job;    /* 0: the slot is free */
    uint32_t *nodes; /* of the machine, ascending */
    size_t node_count;
    const char *policy; /* its name */
    uint32_t link_use;  /* TOPOLANE_LINKS_... */
    uint32_t *links;
    size_t link_count;
    double bandwidth_share;
    void *map; /* its nodes as the caller knows them */
} Holder;

/* A state of the engine, and which jobs are in it. */
typedef struct {
    topolane_state *state;
    uint64_t *held;
    uint64_t used; /* the moment, counted in calls */
} Scene;

enum { SCENES = 12, NO_SLOT = UINT32_MAX };

typedef struct {
    const Engine *engine;
    const topolane_machine *machine;
    Links_Out out;         /* links that no new job may own */
    topolane_state *empty; /* in which no job is, and no link has failed: a job that needs such a link can start one day */
    Scene scenes[SCENES];
    uint64_t moment;
    uint64_t changes;      /* how often jobs or links out of service have changed */
    Holder *list;       /* by slot */
    size_t words;       /* of 64 slots */
    uint64_t *there;    /* slots that are taken */
    uint64_t *isolated; /* slots of isolated jobs */
    uint32_t *by_job;   /* slots by the number of their job, ascending */
    size_t count;
    void (*free_map)(void *map);
} Holders;

/* Returns NULL, or a sentence that the caller frees. */
char *holders_open(Holders *holders, const Engine *engine, const topolane_machine *machine, void (*free_map)(void *));

void holders_close(Holders *holders);

/* The slot of a job, or NO_SLOT. */
uint32_t holders_find(const Holders *holders, uint64_t job);

/* Takes over a job, with its arrays and its map; one with the same number is replaced and keeps its slot. Returns the slot, or
 * NO_SLOT without memory: then all that was given is freed. */
uint32_t holders_put(Holders *holders, Holder holder);

void holders_remove(Holders *holders, uint32_t slot);

/* The state of the engine in which all jobs are but those that are gone (bits by slot; NULL for none). Returns NULL, or a
 * sentence; then the states are rebuilt at the next call. A job whose links another one holds as well is there without them. */
char *holders_scene(Holders *holders, const uint64_t *gone, topolane_state **state);

/* After a failure of the engine: its states are of no use any more and are rebuilt when they are needed. Returns NULL, or a
 * sentence. */
char *holders_renew(Holders *holders);

/* Takes over other links that no new job may own, and rebuilds the states; jobs that own such a link keep it. Returns NULL, or a
 * sentence (a link that the machine does not have): then the links of before stay. */
char *holders_set_out(Holders *holders, Links_Out out);

/* Whether a job is there that is isolated. */
bool holders_isolated(const Holders *holders, const uint64_t *gone);

/* Bits by slot. */
static inline bool slot_test(const uint64_t *bits, uint32_t slot)
{
    return bits[slot / 64] >> slot % 64 & 1;
}
static inline void slot_set(uint64_t *bits, uint32_t slot)
{
    bits[slot / 64] |= UINT64_C(1) << slot % 64;
}
static inline void slot_clear(uint64_t *bits, uint32_t slot)
{
    bits[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

/* The next slot from one on whose bit is set, or NO_SLOT. */
static inline uint32_t slot_next(const uint64_t *bits, size_t words, uint32_t from)
{
    for (size_t word = from / 64; word < words; word++) {
        uint64_t rest = bits[word] & (word == from / 64 ? ~UINT64_C(0) << from % 64 : ~UINT64_C(0));
        if (rest)
            return (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(rest);
    }
    return NO_SLOT;
}

#endif
