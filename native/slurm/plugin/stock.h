/* The stock plugin that this one wraps: it answers everything but the choice among nodes, and that too as a fallback. */
#ifndef TOPOLANE_STOCK_H
#define TOPOLANE_STOCK_H

#include "release.h"

typedef struct {
#define ENTRY(type, name, parameters, arguments) type(*name) parameters;
    STOCK_ENTRIES(ENTRY)
#undef ENTRY
    uint32_t plugin_id;
} Stock;

extern Stock stock;

/* Loads topology_NAME.so from Slurm's directories of plugins. False, with a line in the log, if there is none. */
bool stock_load(const char *name);

void stock_close(void);

/* The stock evaluation, and the time that it took so far, nanoseconds. */
int stock_choose(topology_eval_t *asked);
extern uint64_t stock_time;

/* Lets the stock evaluation choose among some of the candidates; at most `most` nodes, if that is not 0. If it finds
 * nothing, `asked` is as before. Returns what the stock evaluation returns: SLURM_SUCCESS, or why it finds nothing. */
int stock_try(topology_eval_t *asked, bitstr_t *among, uint32_t most);

#endif
