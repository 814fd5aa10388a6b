/* Saves a search: in each test of backfill, Slurm asks the same question twice. */
#ifndef TOPOLANE_REPEATED_H
#define TOPOLANE_REPEATED_H

#include "driver.h"

/* Whether the policy refused the last question and this one is the same, within the same second: the same job, terms,
 * nodes and gone jobs. */
bool repeated_refusal(const topology_eval_t *asked, const Terms *terms, const uint64_t *gone);

/* Records a question that the policy alone refused, without the stock evaluation. */
void repeated_refused(const topology_eval_t *asked, const Terms *terms, const uint64_t *gone);

#endif
