/* Which jobs a job may push aside. */
#ifndef TOPOLANE_PREEMPTION_H
#define TOPOLANE_PREEMPTION_H

#include "driver.h"

/* Slurm asks with all jobs gone that may be preempted, and then preempts those on the nodes that it got. The others stay:
 * marks them as there. Returns whether any was. */
bool preemption_spares(const job_record_t *job, bitstr_t *nodes);

#endif
