/* Which jobs a job may push aside. */
#ifndef TOPOLANE_PREEMPTION_H
#define TOPOLANE_PREEMPTION_H

#include "driver.h"

/* Slurm asks with all jobs gone that may be preempted, and then preempts those on the nodes that it got. The others stay: takes
 * them out of those that are gone. Returns whether there was any. */
bool preemption_spares(const job_record_t *job, bitstr_t *nodes, uint64_t *gone);

#endif
