/* Tracks which jobs hold nodes. It only reads slurmctld's own list of jobs. */
#ifndef TOPOLANE_RUNNING_H
#define TOPOLANE_RUNNING_H

#include "driver.h"

/* Updates `driver.holders`. A job that got an answer may have started since. The list of jobs is read again if idle
 * nodes have changed in another way, and once a second if jobs have changed. */
void running_update(void);

/* Records the job that this call answers with nodes for now, because it may hold them by the next call. */
void running_answered(const job_record_t *job);

/* Whether jobs have changed since the list of jobs was read. Any thread may call this. */
bool running_is_old(void);

/* Updates `driver.holders` between calls. Unlike running_update, it writes no file. */
void running_look(void);

/* The terms of a job that holds nodes. It is not isolated if stock Slurm chose its nodes in place of the engine. */
Terms running_terms(const job_record_t *job);

/* The use of links that a job with these terms keeps: TOPOLANE_LINKS_... */
uint32_t running_link_use(const Terms *terms);

/* The running job that is to take over the nodes of this one (--dependency=expand); NULL for none. */
const job_record_t *running_grown_by(const job_record_t *job);

/* The jobs that are gone in the hypothesis of a call, by their slots in `driver.holders`; NULL for none. The result is
 * valid until the next call, and the caller may change it. */
uint64_t *running_gone(const topology_eval_t *asked);

/* Forgets all jobs, so that they are read again. */
void running_forget(void);

#endif
