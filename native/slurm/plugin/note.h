/* Notes in a job's SystemComment, which its user sees in `scontrol show job` and which slurmctld keeps over a restart. */
#ifndef TOPOLANE_NOTE_H
#define TOPOLANE_NOTE_H

#include "release.h"

/* The reason why the engine has no answer for a job. */
typedef enum { NO_ENGINE, ENGINE_FAULT, ENGINE_LATE, SHARES_CORES, UNNAMED_NODES } Lack;

/* The reason as a phrase that follows `because`. */
const char *note_reason(Lack lack);

/* Notes that the job waits for the engine. */
void note_waits(job_record_t *job, Lack lack);

/* Notes that the job should have been isolated but stock Slurm chose its nodes. */
void note_stock(job_record_t *job, Lack lack);

/* Removes the note. */
void note_nothing(job_record_t *job);

/* Whether the job should have been isolated but stock Slurm chose its nodes. */
bool note_is_stock(const job_record_t *job);

#endif
