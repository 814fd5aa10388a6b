/* The segments of a job (--segment), for plugins of Slurm that ask for them: from 25.11 on, switch/nvidia_imex gives each
 * segment a channel of its own. */
#ifndef TOPOLANE_SEGMENTS_H
#define TOPOLANE_SEGMENTS_H

#include "release.h"
#include "stock.h"

/* Stores in the job which of its nodes are which segment, if the job asks for that and the stock plugin has not done it:
 * topology/block does, for its own blocks. Call this after the stock evaluation, which removes what was stored before. */
void segments_store(job_record_t *job, bitstr_t *nodes, uint32_t size);

/* Whether this plugin stores segments in place of a stock plugin. */
bool segments_are_stored_by(const Stock *with);

/* What is stored: the list of host lists, and its end. */
list_t *segments_of(void *stored);
void segments_free(void *stored);

#endif
