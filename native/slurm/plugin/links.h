/* What happens to the links of a job that got an answer. */
#ifndef TOPOLANE_LINKS_H
#define TOPOLANE_LINKS_H

#include "choices.h"

/* Writes down the links that come with a choice, if any: in memory, and in the file if the job may start now. `nodes` are those
 * that the stock evaluation took. */
void links_given(const job_record_t *job, const Choice *choice, bitstr_t *nodes, bool is_hypothesis);

/* Writes the file when it lacks the links of a job that holds nodes: a started task of an array has a number of its own. */
void links_held(void);

/* The job owns no links: neither in memory nor in the file. */
void links_none(const job_record_t *job);

#endif
