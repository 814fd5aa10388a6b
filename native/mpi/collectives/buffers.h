/* Converts typed buffers to bytes, and makes types for a message. */
#ifndef TOPOLANE_MPI_BUFFERS_H
#define TOPOLANE_MPI_BUFFERS_H

#include "two_level.h"

/* The bytes of data in `count` elements, without gaps. Returns false if MPI itself must report what is
 * wrong. */
bool data_bytes(MPI_Count count, MPI_Datatype type, size_t *bytes);

MPI_Aint extent_of(MPI_Datatype type);

/* The address of the element `at`. MPI_IN_PLACE stays as it is. */
static inline void *element_at(const void *buffer, int at, MPI_Datatype type)
{
    return buffer == MPI_IN_PLACE ? MPI_IN_PLACE : (char *)buffer + at * extent_of(type);
}

/* Whether elements are contiguous in memory, in the order of their signature. */
bool is_plain(MPI_Datatype type);

/* Copy between a typed buffer and contiguous data, with the number of bytes that `data_bytes` returns. */
int pack_bytes(const void *typed, MPI_Count count, MPI_Datatype type, void *bytes, MPI_Comm comm);
int unpack_bytes(const void *bytes, void *typed, MPI_Count count, MPI_Datatype type, MPI_Comm comm);

/* Memory for `count` elements including gaps. Returns the address to use as a buffer, and in `*base` the
 * address to free. NULL without memory. */
void *room_for(MPI_Count count, MPI_Datatype type, void **base);

/* A committed type of any number of elements. */
int type_repeated(MPI_Count count, MPI_Datatype type, MPI_Datatype *made);

/* A committed type of blocks, each `at` bytes from the buffer's start; with its own type for each block if
 * `types` is given. */
int type_of_blocks(int blocks, const MPI_Count *counts, const MPI_Aint *at, MPI_Datatype type,
                   const MPI_Datatype *types, MPI_Datatype *made);

static inline MPI_Count block_count(Blocks blocks, int rank)
{
    return blocks.counts ? blocks.counts[rank] : blocks.large_counts[rank];
}

/* The number of elements from the buffer's start to a rank's block. */
static inline MPI_Aint block_start(Blocks blocks, int rank)
{
    return blocks.displs ? blocks.displs[rank] : blocks.large_displs[rank];
}

#endif
