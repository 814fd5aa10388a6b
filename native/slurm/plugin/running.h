/* Which jobs hold nodes: read from slurmctld's own list of jobs, and nothing else. */
#ifndef TOPOLANE_RUNNING_H
#define TOPOLANE_RUNNING_H

#include "driver.h"

/* Brings `driver.holders` up to date. A job that got an answer may have started since. The list of jobs is read again when idle
 * nodes have changed otherwise, and once a second when jobs have. */
void running_update(void);

/* The job that this call answers with nodes for now: it may hold them at the next one. */
void running_answered(const job_record_t *job);

/* Publishes what a job has been given that may start now: Slurm may not call again for long. */
void running_may_start(const job_record_t *job, const Terms *terms);

/* Which jobs are gone in the hypothesis that a call asks about, by their slots in `driver.holders`; NULL for none. It is valid
 * until the next call, and the caller may change it. */
uint64_t *running_gone(const topology_eval_t *asked);

/* Forgets all jobs: they are read again. */
void running_forget(void);

#endif
