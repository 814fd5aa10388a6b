/* Reads slurmctld's list of jobs while Slurm asks the plugin for no nodes. Tasks of arrays, jobs of stock Slurm and jobs of a
 * former slurmctld hold nodes without a call, and jobs lose nodes or take those of other jobs without one. */
#ifndef TOPOLANE_LOOK_H
#define TOPOLANE_LOOK_H

#include "publish.h"

/* For the thread that publishes. Taking Slurm's locks waits for the threads of slurmctld that change jobs. */
extern const Looks look_looks;

#endif
