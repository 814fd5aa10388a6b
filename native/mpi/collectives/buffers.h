/* Typed buffers as bytes, and types made for a message. */
#ifndef TOPOLANE_MPI_BUFFERS_H
#define TOPOLANE_MPI_BUFFERS_H

#include "two_level.h"

/* Bytes of data in `count` elements, gaps not counted. False where MPI itself is to say what is wrong. */
bool data_bytes(MPI_Count count, MPI_Datatype type, size_t *bytes);

MPI_Aint extent_of(MPI_Datatype type);

/* MPI_IN_PLACE stays what it is. */
static inline void *element_at(const void *buffer, int at, MPI_Datatype type)
{
    return buffer == MPI_IN_PLACE ? MPI_IN_PLACE : (char *)buffer + at * extent_of(type);
}

/* Whether elements lie side by side in memory in the order of their signature. */
bool is_plain(MPI_Datatype type);

/* Between a typed buffer and its data side by side, as many bytes as `data_bytes` says. */
int pack_bytes(const void *typed, MPI_Count count, MPI_Datatype type, void *bytes, MPI_Comm comm);
int unpack_bytes(const void *bytes, void *typed, MPI_Count count, MPI_Datatype type, MPI_Comm comm);

/* Room for `count` elements, gaps included: what to use as a buffer, and in `*base` what to free. NULL without
 * memory. */
void *room_for(MPI_Count count, MPI_Datatype type, void **base);

/* A type of any number of elements. */
int type_repeated(MPI_Count count, MPI_Datatype type, MPI_Datatype *made);

/* A committed type of blocks, `at` bytes from the buffer's start; a `type` for each block if `types` has them. */
int type_of_blocks(int blocks, const MPI_Count *counts, const MPI_Aint *at, MPI_Datatype type,
                   const MPI_Datatype *types, MPI_Datatype *made);

static inline MPI_Count block_count(Blocks blocks, int rank)
{
    return blocks.counts ? blocks.counts[rank] : blocks.large_counts[rank];
}

/* Elements from the buffer's start to a rank's block. */
static inline MPI_Aint block_start(Blocks blocks, int rank)
{
    return blocks.displs ? blocks.displs[rank] : blocks.large_displs[rank];
}

#endif
