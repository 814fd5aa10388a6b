#include "stages.h"

#include "../models/model.h"

int stage_barrier(Levels *levels)
{
    model_barrier(&(Model){&levels->own, NULL});
    return PMPI_Barrier(levels->inside);
}

int stage_bcast(Levels *levels, void *buffer, int count, MPI_Datatype type, int at)
{
    model_bcast(&(Model){&levels->own, NULL}, at, bytes_of(count, type));
    return PMPI_Bcast(buffer, count, type, at, levels->inside);
}

int stage_reduce(Levels *levels, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int at)
{
    model_reduce(&(Model){&levels->own, NULL}, at, bytes_of(count, type));
    return PMPI_Reduce(send, receive, count, type, op, at, levels->inside);
}

int stage_gather(Levels *levels, const void *send, int bytes, void *receive, int at)
{
    model_gather(&(Model){&levels->own, NULL}, at, (uint64_t)bytes);
    return PMPI_Gather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, at, levels->inside);
}

static uint64_t size_at(const void *sizes, int rank)
{
    return (uint64_t)((const int *)sizes)[rank];
}

int stage_gatherv(Levels *levels, const void *send, int bytes, void *receive, const int *sizes, const int *offsets,
                  int at)
{
    model_gatherv(&(Model){&levels->own, NULL}, at, (uint64_t)bytes, size_at, sizes);
    return PMPI_Gatherv(send, bytes, MPI_BYTE, receive, sizes, offsets, MPI_BYTE, at, levels->inside);
}

int stage_scatter(Levels *levels, const void *send, void *receive, int bytes, int at)
{
    model_scatter(&(Model){&levels->own, NULL}, at, (uint64_t)bytes);
    return PMPI_Scatter(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, at, levels->inside);
}

int stage_alltoall(Levels *levels, const void *send, void *receive, int bytes)
{
    model_alltoall(&(Model){&levels->own, NULL}, (uint64_t)bytes);
    return PMPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, levels->inside);
}
