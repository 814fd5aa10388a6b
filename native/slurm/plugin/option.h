/* The options that a job gives itself: `sbatch --topolane=dedicated,min-bandwidth=0.5`. Knows neither Slurm nor the
 * engine. The SPANK plugin, which adds the option to sbatch, srun and salloc, refuses unreadable options with the same
 * code. */
#ifndef TOPOLANE_OPTION_H
#define TOPOLANE_OPTION_H

#include "policies.h"

/* The variable in which the SPANK plugin stores the option in the job. Slurm adds the prefix SPANK_ only for prologs. */
#define OPTION_VARIABLE "TOPOLANE_OPTION"
#define OPTION_IN_JOB OPTION_VARIABLE "="

/* The most characters of the option. slurmctld reads each job's option repeatedly, and any user may submit one. */
enum { MOST_OPTION = 200 };

typedef struct {
    const Policy_Kind *policy; /* NULL: the policy of the job's rule */
    double min_bandwidth;      /* 0: the value of the job's rule */
    bool shares_links;         /* the job may share links with isolated jobs */
} Option;

/* Reads words separated by commas: a policy, `min-bandwidth=X`, `share-links`. Returns NULL, or a sentence that the
 * caller frees. */
char *option_read(Option *option, const char *text);

#endif
