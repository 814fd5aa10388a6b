/* The latest refused jobs, for people who ask why a job waits. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_WAITING_H
#define TOPOLANE_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { WAITING_MOST = 512, WAITING_SECONDS = 5 };

typedef struct {
    uint32_t job; /* 0: unused */
    const char *policy;
    int rule; /* see Terms */
    double min_bandwidth;
    time_t refused;
    const char *kind; /* the engine's name for the kind, or "no-area" */
    uint32_t wanted;  /* number of nodes */
} Refused;

typedef struct {
    uint32_t jobs[WAITING_MOST]; /* the jobs of `list`, kept apart because many calls search them */
    Refused list[WAITING_MOST];
    uint64_t *candidates; /* for each job, a bitmap of the machine's nodes that Slurm offered */
    size_t words;         /* 64-bit words for each job */
    size_t next;          /* index of the entry to replace next */
} Waiting;

/* Allocates memory for machines of `nodes` nodes. Returns false without memory. */
bool waiting_open(Waiting *waiting, uint32_t nodes);

void waiting_close(Waiting *waiting);

/* Whether a job's last refusal is so old that it should be recorded again. */
bool waiting_is_due(const Waiting *waiting, uint32_t job, time_t now);

/* Records a refusal in place of the job's former one, or of the oldest. */
void waiting_refused(Waiting *waiting, Refused refused, const uint32_t *candidates, size_t count);

/* Removes the refusal of a job that no longer waits. */
void waiting_forget(Waiting *waiting, uint32_t job);

#endif
