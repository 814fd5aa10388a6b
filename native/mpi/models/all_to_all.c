/* Models from all ranks to all: dissemination, rings, pairwise exchange. */
#include <stdlib.h>

#include "model.h"

enum { RECURSIVE_ALLGATHER = 524288, BRUCK_ALLGATHER = 81920, BRUCK_ALLTOALL = 256, BRUCK_ALLTOALL_RANKS = 8 };

static int up(const Model *model, int distance)
{
    return (model->of->rank + distance) % model->of->size;
}

static int down(const Model *model, int distance)
{
    return (model->of->rank - distance + model->of->size) % model->of->size;
}

void model_barrier(const Model *model)
{
    for (int distance = 1; distance < model->of->size; distance <<= 1) {
        model_send(model, up(model, distance), 0);
        model_receive(model, down(model, distance));
    }
}

void model_allgather(const Model *model, uint64_t bytes)
{
    int size = model->of->size;
    uint64_t total = bytes * (uint64_t)size;
    if (!bytes)
        return;
    if (!(size & (size - 1)) && total < RECURSIVE_ALLGATHER) {
        for (int bit = 1; bit < size; bit <<= 1)
            model_exchange(model, model->of->rank ^ bit, bytes * (uint64_t)bit);
    } else if (total < BRUCK_ALLGATHER) {
        for (int distance = 1; distance < size; distance <<= 1) {
            int blocks = distance < size - distance ? distance : size - distance;
            model_send(model, down(model, distance), bytes * (uint64_t)blocks);
            model_receive(model, up(model, distance));
        }
    } else {
        for (int step = 1; step < size; step++) {
            model_send(model, up(model, 1), bytes);
            model_receive(model, down(model, 1));
        }
    }
}

void model_allgatherv(const Model *model, Part *part, const void *parts)
{
    for (int step = 0; step < model->of->size - 1; step++) {
        uint64_t bytes = part(parts, down(model, step));
        if (bytes)
            model_send(model, up(model, 1), bytes);
        if (part(parts, down(model, step + 1)))
            model_receive(model, down(model, 1));
    }
}

/* The number of blocks whose number, counted from the sender, has this bit set. */
static int with_bit(int size, int bit)
{
    int blocks = 0;
    for (int block = 1; block < size; block++)
        blocks += (block & bit) != 0;
    return blocks;
}

void model_alltoall(const Model *model, uint64_t bytes)
{
    int size = model->of->size;
    if (!bytes)
        return;
    if (bytes <= BRUCK_ALLTOALL && size >= BRUCK_ALLTOALL_RANKS) {
        for (int distance = 1; distance < size; distance <<= 1) {
            model_send(model, up(model, distance), bytes * (uint64_t)with_bit(size, distance));
            model_receive(model, down(model, distance));
        }
        return;
    }
    for (int distance = 1; distance < size; distance++) {
        model_send(model, up(model, distance), bytes);
        model_receive(model, down(model, distance));
    }
}

void model_alltoallv(const Model *model, Part *out, const void *outs, Part *in, const void *ins)
{
    for (int distance = 1; distance < model->of->size; distance++) {
        int to = up(model, distance), from = down(model, distance);
        uint64_t bytes = out(outs, to);
        if (bytes)
            model_send(model, to, bytes);
        if (in(ins, from))
            model_receive(model, from);
    }
}

/* Neighbours in the communicator's topology: sources and destinations, -1 at the end of a grid. */
typedef struct {
    int in, out;
    int *source, *destination;
} Neighbours;

static bool on_grid(MPI_Comm comm, Neighbours *found)
{
    int dimensions;
    if (PMPI_Cartdim_get(comm, &dimensions) != MPI_SUCCESS)
        return false;
    found->in = found->out = 2 * dimensions;
    found->source = found->destination = malloc(sizeof(int) * (2 * (size_t)dimensions + 1));
    for (int at = 0; found->source && at < dimensions; at++)
        PMPI_Cart_shift(comm, at, 1, &found->source[2 * at], &found->source[2 * at + 1]);
    return found->source != NULL;
}

static bool on_graph(MPI_Comm comm, int me, Neighbours *found)
{
    int count;
    if (PMPI_Graph_neighbors_count(comm, me, &count) != MPI_SUCCESS)
        return false;
    found->in = found->out = count;
    found->source = found->destination = malloc(sizeof(int) * ((size_t)count + 1));
    return found->source && PMPI_Graph_neighbors(comm, me, count, found->source) == MPI_SUCCESS;
}

static bool on_distributed_graph(MPI_Comm comm, Neighbours *found)
{
    int weighted;
    if (PMPI_Dist_graph_neighbors_count(comm, &found->in, &found->out, &weighted) != MPI_SUCCESS)
        return false;
    size_t room = (size_t)found->in + (size_t)found->out + 1;
    int *ranks = found->source = malloc(sizeof(int) * 2 * room), *weights = ranks + room;
    found->destination = ranks + found->in;
    return ranks && PMPI_Dist_graph_neighbors(comm, found->in, ranks, weights, found->out, ranks + found->in,
                                              weights + found->in) == MPI_SUCCESS;
}

void model_neighbours(const Model *model, MPI_Comm comm, Part *out, const void *outs)
{
    Neighbours found = {0};
    int topology = MPI_UNDEFINED;
    PMPI_Topo_test(comm, &topology);
    bool known = topology == MPI_CART    ? on_grid(comm, &found)
                 : topology == MPI_GRAPH ? on_graph(comm, model->of->rank, &found)
                                         : topology == MPI_DIST_GRAPH && on_distributed_graph(comm, &found);
    for (int at = 0; known && at < found.out; at++)
        if (found.destination[at] >= 0)
            model_send(model, found.destination[at], out(outs, at));
    for (int at = 0; known && at < found.in; at++)
        if (found.source[at] >= 0)
            model_receive(model, found.source[at]);
    free(found.source);
}
