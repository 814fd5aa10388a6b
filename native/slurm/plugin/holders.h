/* The jobs that hold nodes, in a state of the engine, and the engine's states for hypotheses in which some of these jobs
 * are gone. Knows the engine, not Slurm.
 *
 * Each job has a slot, and a set of jobs is a bitmap by slot. */
#ifndef TOPOLANE_HOLDERS_H
#define TOPOLANE_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "links_out.h"

typedef struct {
    uint64_t job;    /* 0: the slot is free */
    uint32_t *nodes; /* the machine's numbers, ascending */
    size_t node_count;
    const char *policy; /* name of the policy */
    uint32_t link_use;  /* TOPOLANE_LINKS_... */
    uint32_t *links;
    size_t link_count;
    double bandwidth_share;
    void *map; /* its nodes in the caller's form */
} Holder;

enum { NO_SLOT = UINT32_MAX };

/* States in which some jobs are gone. Backfill asks for many jobs about the same few moments, and to make a state takes
 * many times as long as to place a job in it. */
enum { MOST_HYPOTHESES = 64, LEAST_HYPOTHESES = 4, NODES_OF_HYPOTHESES = 1 << 17 };
typedef struct {
    uint64_t sums[MOST_HYPOTHESES]; /* of the jobs that are gone */
    uint64_t asked[MOST_HYPOTHESES]; /* when it was used last; 0: there is none */
    topolane_state *states[MOST_HYPOTHESES];
    uint64_t *gone;   /* of each, as many words as there are words of slots */
    uint64_t now;     /* counts what was asked */
    uint64_t changes; /* those of the holders that the states know */
    size_t most;      /* the number of states that are kept; smaller for large machines */
} Hypotheses;

typedef struct {
    const Engine *engine;
    const topolane_machine *machine;
    Links_Out out;         /* links that no new job may own */
    topolane_state *empty; /* without jobs and without failed links: shows whether a job could start one day, even on
                            * links that fail now */
    topolane_state *now;   /* with the jobs in `held`; NULL: rebuilt when needed */
    Hypotheses then;
    uint64_t *held;        /* slots of the jobs in `now` */
    uint64_t changes;      /* number of changes to jobs or to links out of service */
    Holder *list;       /* by slot */
    size_t words;       /* words of 64 slots */
    uint64_t *there;    /* slots in use */
    uint64_t *isolated; /* slots of isolated jobs */
    uint32_t *by_job;   /* slots in ascending order of their job's number */
    size_t count;
    void (*free_map)(void *map);
} Holders;

/* Returns NULL, or a sentence that the caller frees. */
char *holders_open(Holders *holders, const Engine *engine, const topolane_machine *machine, void (*free_map)(void *));

void holders_close(Holders *holders);

/* The slot of a job, or NO_SLOT. */
uint32_t holders_find(const Holders *holders, uint64_t job);

/* Stores a job and takes ownership of its arrays and map. A job with the same number is replaced and keeps its slot.
 * Returns the slot; without memory, frees what was given and returns NO_SLOT. */
uint32_t holders_put(Holders *holders, Holder holder);

void holders_remove(Holders *holders, uint32_t slot);

/* The state of the engine with all jobs except those in `gone` (bits by slot; NULL for none), until the next call. If
 * another job holds a job's links too, the job is in the state without them. Returns NULL, or a sentence; then the states
 * are rebuilt at the next call. */
char *holders_without(Holders *holders, const uint64_t *gone, topolane_state **state);

/* Discards all states after a failure of the engine; they are rebuilt when needed. Returns NULL, or a sentence. */
char *holders_renew(Holders *holders);

/* Replaces the links that no new job may own, and rebuilds the states. Jobs that own such a link keep it. Returns NULL,
 * or a sentence (for a link that the machine does not have); then the earlier links stay. */
char *holders_set_out(Holders *holders, Links_Out out);

/* Whether there is an isolated job that is not among the jobs in `gone`. */
bool holders_isolated(const Holders *holders, const uint64_t *gone);

/* Functions for bitmaps by slot. */
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

/* The first slot from `from` on whose bit is set, or NO_SLOT. */
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
