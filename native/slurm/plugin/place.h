/* Decides a call: from which candidates the stock evaluation may choose. */
#ifndef TOPOLANE_PLACE_H
#define TOPOLANE_PLACE_H

#include "release.h"

/* Answers topology_p_eval_nodes. */
int place(topology_eval_t *asked);

#endif
