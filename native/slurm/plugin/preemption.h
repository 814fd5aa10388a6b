/* Decides which jobs a job preempts. */
#ifndef TOPOLANE_PREEMPTION_H
#define TOPOLANE_PREEMPTION_H

#include "driver.h"

/* Slurm asks with all jobs gone that may be preempted, but then preempts only those on the job's new nodes. This removes
 * the others from `gone`. Returns whether there were any. */
bool preemption_spares(const job_record_t *job, bitstr_t *nodes, uint64_t *gone);

#endif
