/* The jobs that were refused last, for people who ask why a job waits. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_WAITING_H
#define TOPOLANE_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { WAITING_MOST = 512, WAITING_SECONDS = 5 };

typedef struct {
    uint32_t job; /* 0: none */
    const char *policy;
    double min_bandwidth;
    time_t refused;
    const char *kind; /* as the engine names it, or "no-area" */
    uint32_t wanted;  /* nodes */
} Refused;

typedef struct {
    uint32_t jobs[WAITING_MOST]; /* of `list`: they are looked for in many calls */
    Refused list[WAITING_MOST];
    uint64_t *candidates; /* of each, the nodes of the machine that Slurm offered, a bit each */
    size_t words;         /* of 64 bits, for each */
    size_t next;          /* which one is replaced next */
} Waiting;

/* Makes room for machines of `nodes` nodes. False without memory. */
bool waiting_open(Waiting *waiting, uint32_t nodes);

void waiting_close(Waiting *waiting);

/* Whether a job's last refusal is so old that it should be written down again. */
bool waiting_is_due(const Waiting *waiting, uint32_t job, time_t now);

/* Writes down a refusal in place of the job's former one, or of the oldest. */
void waiting_refused(Waiting *waiting, Refused refused, const uint32_t *candidates, size_t count);

/* The job does not wait any more. */
void waiting_forget(Waiting *waiting, uint32_t job);

#endif
