#include "buffers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool data_bytes(MPI_Count count, MPI_Datatype type, size_t *bytes)
{
    MPI_Count size = 0;
    if (count < 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0)
        return false;
    return !__builtin_mul_overflow((size_t)count, (size_t)size, bytes);
}

MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lower, extent = 0;
    PMPI_Type_get_extent(type, &lower, &extent);
    return extent;
}

/* A derived type without gaps may still order its elements differently from memory. */
bool is_plain(MPI_Datatype type)
{
    int integers, addresses, types, combiner = -1;
    size_t bytes;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED && data_bytes(1, type, &bytes) && extent_of(type) == (MPI_Aint)bytes;
}

enum { TAG_TO_ITSELF = 2 };

/* Copies through a message to itself, because MPICH sends and receives at MPI_BOTTOM but does not pack
 * there. */
static int to_itself(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type,
                     MPI_Comm comm)
{
    int rank, code = PMPI_Comm_rank(comm, &rank);
    return code != MPI_SUCCESS ? code
                               : PMPI_Sendrecv(from, count, type, rank, TAG_TO_ITSELF, to, to_count, to_type, rank,
                                               TAG_TO_ITSELF, comm, MPI_STATUS_IGNORE);
}

int pack_bytes(const void *typed, MPI_Count count, MPI_Datatype type, void *bytes, MPI_Comm comm)
{
    size_t length;
    int position = 0;
    if (!data_bytes(count, type, &length))
        return MPI_ERR_TYPE;
    if (!is_plain(type) && typed == MPI_BOTTOM)
        return to_itself(typed, (int)count, type, bytes, (int)length, MPI_PACKED, comm);
    if (!is_plain(type))
        return PMPI_Pack(typed, (int)count, type, bytes, (int)length, &position, comm);
    if (length)
        memcpy(bytes, typed, length);
    return MPI_SUCCESS;
}

int unpack_bytes(const void *bytes, void *typed, MPI_Count count, MPI_Datatype type, MPI_Comm comm)
{
    size_t length;
    int position = 0;
    if (!data_bytes(count, type, &length))
        return MPI_ERR_TYPE;
    if (!is_plain(type) && typed == MPI_BOTTOM)
        return to_itself(bytes, (int)length, MPI_PACKED, typed, (int)count, type, comm);
    if (!is_plain(type))
        return PMPI_Unpack(bytes, (int)length, &position, typed, (int)count, type, comm);
    if (length)
        memcpy(typed, bytes, length);
    return MPI_SUCCESS;
}

void *room_for(MPI_Count count, MPI_Datatype type, void **base)
{
    MPI_Aint lower, true_extent, extent = extent_of(type), last = (MPI_Aint)(count - 1) * extent;
    PMPI_Type_get_true_extent(type, &lower, &true_extent);
    *base = malloc((size_t)(true_extent + (last < 0 ? -last : last)) + 1);
    return *base ? (char *)*base - lower - (last < 0 ? last : 0) : NULL;
}

int type_repeated(MPI_Count count, MPI_Datatype type, MPI_Datatype *made)
{
    enum { CHUNK = 1 << 20 };
    MPI_Datatype chunk;
    int code = PMPI_Type_contiguous(CHUNK, type, &chunk);
    if (code != MPI_SUCCESS)
        return code;
    int lengths[] = {(int)(count / CHUNK), (int)(count % CHUNK)};
    MPI_Aint at[] = {0, (MPI_Aint)(count - count % CHUNK) * extent_of(type)};
    MPI_Datatype types[] = {chunk, type};
    code = PMPI_Type_create_struct(2, lengths, at, types, made);
    PMPI_Type_free(&chunk);
    return code == MPI_SUCCESS ? PMPI_Type_commit(made) : code;
}

/* Blocks of up to INT_MAX elements stay as they are. A larger block becomes one element of a larger type. */
static int fill(int blocks, const MPI_Count *counts, MPI_Datatype type, const MPI_Datatype *types, int *lengths,
                MPI_Datatype *elements)
{
    for (int i = 0; i < blocks; i++) {
        elements[i] = types ? types[i] : type;
        lengths[i] = counts[i] > INT_MAX ? 1 : (int)counts[i];
        if (counts[i] > INT_MAX) {
            int code = type_repeated(counts[i], elements[i], &elements[i]);
            if (code != MPI_SUCCESS)
                return code;
        }
    }
    return MPI_SUCCESS;
}

int type_of_blocks(int blocks, const MPI_Count *counts, const MPI_Aint *at, MPI_Datatype type,
                   const MPI_Datatype *types, MPI_Datatype *made)
{
    int *lengths = calloc((size_t)blocks + 1, sizeof *lengths);
    MPI_Datatype *elements = calloc((size_t)blocks + 1, sizeof *elements);
    int code = lengths && elements ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS)
        code = fill(blocks, counts, type, types, lengths, elements);
    if (code == MPI_SUCCESS) {
        code = PMPI_Type_create_struct(blocks, lengths, at, elements, made);
        if (code == MPI_SUCCESS)
            code = PMPI_Type_commit(made);
        for (int i = 0; i < blocks; i++)
            if (counts[i] > INT_MAX)
                PMPI_Type_free(&elements[i]);
    }
    free(lengths);
    free(elements);
    return code;
}
