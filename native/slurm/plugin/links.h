/* Records the links of jobs that got an answer. */
#ifndef TOPOLANE_LINKS_H
#define TOPOLANE_LINKS_H

#include "choices.h"

/* Records the links of a choice, if it has any: in memory, and in the file too if the job may start now. `nodes` are
 * those that the stock evaluation took. */
void links_given(const job_record_t *job, const Choice *choice, bitstr_t *nodes, bool is_hypothesis);

/* Writes the file if it lacks the links of a job that holds nodes. This happens for a started task of an array, which
 * gets its own number. */
void links_held(void);

/* Records that the job owns no links, in memory and in the file. */
void links_none(const job_record_t *job);

#endif
