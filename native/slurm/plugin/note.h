/* What the user of a job reads of it in its SystemComment (scontrol show job), and what slurmctld keeps of it over a restart. */
#ifndef TOPOLANE_NOTE_H
#define TOPOLANE_NOTE_H

#include "release.h"

/* Why the engine has no answer for a job. */
typedef enum { NO_ENGINE, ENGINE_FAULT, ENGINE_LATE, SHARES_CORES, UNNAMED_NODES } Lack;

/* The reason in words, as what follows `because`. */
const char *note_reason(Lack lack);

/* The job waits for the engine. */
void note_waits(job_record_t *job, Lack lack);

/* The job was to be isolated, and stock Slurm chose its nodes. */
void note_stock(job_record_t *job, Lack lack);

/* Takes back what was noted. */
void note_nothing(job_record_t *job);

/* Whether stock Slurm chose the nodes of a job that was to be isolated. */
bool note_is_stock(const job_record_t *job);

#endif
