/* Which processes share a node, as the launcher placed them. */
#ifndef TOPOLANE_NODES_H
#define TOPOLANE_NODES_H

#include <stddef.h>

typedef struct {
    int processes; /* in all */
    int nodes;
    int per_node;  /* processes of each node; 0 where nodes differ */
    int *rank_of;  /* [node * per_node + slot]: rank in MPI_COMM_WORLD */
    char *hosts;   /* [process][MPI_MAX_PROCESSOR_NAME] */
} Nodes;

/* Collective. Nodes and their slots are numbered in the order of ranks. */
Nodes find_nodes(void);

/* Memory that is there, or the end of the whole program with a sentence. */
void *need(size_t bytes);

#endif
