/* The stock plugin that this one wraps: it chooses cores and devices on the candidates, and nodes as a fallback. */
#ifndef TOPOLANE_STOCK_H
#define TOPOLANE_STOCK_H

#include "core.h"
#include "release.h"

/* The stock plugin for the present call: that of the topology of the job's partition. */
extern const Stock *stock_now;

/* Runs the stock evaluation; `stock_time` is the total time that it has taken, in nanoseconds. */
int stock_choose(topology_eval_t *asked);
extern uint64_t stock_time;

/* Lets the stock evaluation choose among some of the candidates, with at most `most` nodes if that is not 0. If it finds
 * nothing, `asked` is restored. Returns the stock evaluation's code: SLURM_SUCCESS, or why it found nothing. */
int stock_try(topology_eval_t *asked, bitstr_t *among, uint32_t most);

#endif
