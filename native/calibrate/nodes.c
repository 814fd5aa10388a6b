#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes.h"

void *need(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "calibrate: no memory for %lu bytes\n", (unsigned long)bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    } else {
        memset(memory, 0, bytes); /* its pages must be there before anything is timed */
    }
    return memory;
}

static const char *host(const Nodes *nodes, int rank)
{
    return nodes->hosts + (size_t)rank * MPI_MAX_PROCESSOR_NAME;
}

/* Node of every rank: the number of different hosts named before it. */
static int number_nodes(const Nodes *nodes, int *node_of)
{
    int count = 0;
    for (int rank = 0; rank < nodes->processes; rank++) {
        int earlier = 0;
        while (earlier < rank && strcmp(host(nodes, earlier), host(nodes, rank)) != 0)
            earlier++;
        node_of[rank] = earlier < rank ? node_of[earlier] : count++;
    }
    return count;
}

Nodes find_nodes(void)
{
    Nodes nodes;
    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    memset(name, 0, sizeof name);
    MPI_Get_processor_name(name, &length);
    MPI_Comm_size(MPI_COMM_WORLD, &nodes.processes);
    nodes.hosts = need((size_t)nodes.processes * MPI_MAX_PROCESSOR_NAME);
    MPI_Allgather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, nodes.hosts, MPI_MAX_PROCESSOR_NAME, MPI_CHAR,
                  MPI_COMM_WORLD);
    int *node_of = need((size_t)nodes.processes * sizeof *node_of);
    nodes.nodes = number_nodes(&nodes, node_of);
    nodes.per_node = nodes.processes / nodes.nodes;
    nodes.rank_of = need((size_t)nodes.processes * sizeof *nodes.rank_of);
    int *filled = need((size_t)nodes.nodes * sizeof *filled);
    for (int rank = 0; rank < nodes.processes && nodes.per_node > 0; rank++) {
        int slot = filled[node_of[rank]]++;
        if (slot >= nodes.per_node)
            nodes.per_node = 0; /* one node has more than its part */
        else
            nodes.rank_of[node_of[rank] * nodes.per_node + slot] = rank;
    }
    free(filled);
    free(node_of);
    return nodes;
}
