/* The stock plugin that this one wraps. It answers everything except the choice among nodes, and that too as a fallback. */
#ifndef TOPOLANE_STOCK_H
#define TOPOLANE_STOCK_H

#include "release.h"

typedef struct {
#define ENTRY(type, name, parameters, arguments) type(*name) parameters;
    STOCK_ENTRIES(ENTRY)
#undef ENTRY
    uint32_t plugin_id;
    bool supports_exclusive_topo;
} Stock;

/* The stock plugin of this library's name, or of topolane.conf. */
extern Stock stock;

/* The stock plugin for the present call: that of the topology of the job's partition. */
extern const Stock *stock_now;

/* Loads topology_NAME.so from Slurm's plugin directories, except copies of this library. If there is none, logs a line and
 * returns false. */
bool stock_load(const char *name);

void stock_close(void);

/* Runs the stock evaluation; `stock_time` is the total time that it has taken, in nanoseconds. */
int stock_choose(topology_eval_t *asked);
extern uint64_t stock_time;

/* Lets the stock evaluation choose among some of the candidates, with at most `most` nodes if that is not 0. If it finds
 * nothing, `asked` is restored. Returns the stock evaluation's code: SLURM_SUCCESS, or why it found nothing. */
int stock_try(topology_eval_t *asked, bitstr_t *among, uint32_t most);

#endif
