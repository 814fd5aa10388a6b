/* The order in which the tasks of a step fill a job's nodes, from 26.05 on. */
#ifndef TOPOLANE_RANK_H
#define TOPOLANE_RANK_H

#include "release.h"

/* Sets the rank of each node of a job, in the order of the bitmap, so that neighbours are near each other. Slurm frees
 * the array. Returns false, and sets nothing, if the stock plugin is to answer: the plugin is not active, stock Slurm's
 * rule chose the nodes, or the machine file does not name one of them. */
bool rank_nodes(bitstr_t *nodes, uint32_t **ranks, uint32_t *count);

#endif
