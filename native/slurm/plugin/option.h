/* What a job asks for itself: `sbatch --topolane=dedicated,min-bandwidth=0.5`. Knows neither Slurm nor the engine. The SPANK
 * plugin that adds the option to sbatch, srun and salloc refuses with the same code what cannot be read. */
#ifndef TOPOLANE_OPTION_H
#define TOPOLANE_OPTION_H

#include "policies.h"

/* The name under which the SPANK plugin puts the option into the job. Slurm puts SPANK_ before it for prologs only. */
#define OPTION_VARIABLE "TOPOLANE_OPTION"
#define OPTION_IN_JOB OPTION_VARIABLE "="

/* The most characters of the option. slurmctld reads the option of each job again and again, and any user may submit one. */
enum { MOST_OPTION = 200 };

typedef struct {
    const Policy_Kind *policy; /* NULL: that of the job's rule */
    double min_bandwidth;      /* 0: that of the job's rule */
    bool shares_links;         /* it may share links with isolated jobs */
} Option;

/* Reads words between commas: a policy, `min-bandwidth=X`, `share-links`. Returns NULL, or a sentence that the caller frees. */
char *option_read(Option *option, const char *text);

#endif
