/* In each test of backfill Slurm asks the same question twice: the second refusal needs no search. */
#ifndef TOPOLANE_REPEATED_H
#define TOPOLANE_REPEATED_H

#include "driver.h"

/* Whether the policy refused the last question, and this one is the same in the same second: the same job and terms, nodes and jobs
 * that are gone. */
bool repeated_refusal(const topology_eval_t *asked, const Terms *terms, const uint64_t *gone);

/* The policy alone refuses this question: the stock evaluation was not asked. */
void repeated_refused(const topology_eval_t *asked, const Terms *terms, const uint64_t *gone);

#endif
