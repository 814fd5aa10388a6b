/* Decides a call: from which candidates the stock evaluation may choose. */
#ifndef TOPOLANE_PLACE_H
#define TOPOLANE_PLACE_H

#include "release.h"

/* Answers topology_p_eval_nodes. */
int place(topology_eval_t *asked);

/* Whether the rule of the job of the last call is a policy other than stock. */
bool place_was_by_policy(void);

#endif
