/* Collectives without a root, and those of neighbours. Included once for int and once for MPI_Count. */

COLLECTIVE(Allreduce, allreduce,
           (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm),
           two_level_allreduce(send, receive, count, type, op, comm, &result),
           bytes_of(count, type), model_allreduce(model, bytes))

#define SCAN(Name, lower)                                                                                     \
    COLLECTIVE(Name, lower,                                                                                   \
               (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),   \
               (send, receive, count, type, op, comm), false, bytes_of(count, type), model_scan(model, bytes))
SCAN(Scan, scan)
SCAN(Exscan, exscan)
#undef SCAN

COLLECTIVE(Reduce_scatter_block, reduce_scatter_block,
           (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm), false,
           bytes_of(count, type) * (uint64_t)of->size, model_reduce_scatter(model, bytes))

/* The total bytes of `parts` parts. */
static uint64_t LOCAL(sum)(const COUNT *counts, const MPI_Datatype *types, MPI_Datatype type, int parts)
{
    uint64_t bytes = 0;
    for (int at = 0; at < parts; at++)
        bytes += bytes_of(counts[at], types ? types[at] : type);
    return bytes;
}

COLLECTIVE(Reduce_scatter, reduce_scatter,
           (const void *send, void *receive, const COUNT counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (send, receive, counts, type, op, comm), false,
           LOCAL(sum)(counts, NULL, type, of->size), model_reduce_scatter(model, bytes))

COLLECTIVE(Allgather, allgather,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, COUNT receive_count,
            MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, comm),
           two_level_allgather(send, send_count, send_type, receive, receive_count, receive_type, comm,
                               &result),
           SHARE, model_allgather(model, bytes))

COLLECTIVE(Allgatherv, allgatherv,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, const COUNT receive_counts[],
            const DISPLACEMENT displs[], MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_counts, displs, receive_type, comm),
           two_level_allgatherv(send, send_count, send_type, receive, BLOCKS(receive_counts, displs),
                                receive_type, comm, &result),
           bytes_of(receive_counts[of->rank], receive_type),
           model_allgatherv(model, LOCAL(part), PARTS(receive_counts, receive_type)))

COLLECTIVE(Alltoall, alltoall,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, COUNT receive_count,
            MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, comm),
           two_level_alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm,
                              &result),
           SHARE * (uint64_t)of->size, model_alltoall(model, SHARE))

#define IN_PARTS PARTS(receive_counts, receive_type)
COLLECTIVE(Alltoallv, alltoallv,
           (const void *send, const COUNT send_counts[], const DISPLACEMENT send_displs[], MPI_Datatype send_type,
            void *receive, const COUNT receive_counts[], const DISPLACEMENT receive_displs[],
            MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_counts, send_displs, send_type, receive, receive_counts, receive_displs, receive_type, comm),
           false,
           send == MPI_IN_PLACE ? LOCAL(sum)(receive_counts, NULL, receive_type, of->size)
                                : LOCAL(sum)(send_counts, NULL, send_type, of->size),
           model_alltoallv(model, LOCAL(part), send == MPI_IN_PLACE ? IN_PARTS : PARTS(send_counts, send_type),
                           LOCAL(part), IN_PARTS))
#undef IN_PARTS

#define IN_PARTS PARTS_OF(receive_counts, receive_types)
COLLECTIVE(Alltoallw, alltoallw,
           (const void *send, const COUNT send_counts[], const DISPLACEMENT send_displs[],
            const MPI_Datatype send_types[], void *receive, const COUNT receive_counts[],
            const DISPLACEMENT receive_displs[], const MPI_Datatype receive_types[], MPI_Comm comm),
           (send, send_counts, send_displs, send_types, receive, receive_counts, receive_displs, receive_types, comm),
           false,
           send == MPI_IN_PLACE ? LOCAL(sum)(receive_counts, receive_types, MPI_DATATYPE_NULL, of->size)
                                : LOCAL(sum)(send_counts, send_types, MPI_DATATYPE_NULL, of->size),
           model_alltoallv(model, LOCAL(part), send == MPI_IN_PLACE ? IN_PARTS : PARTS_OF(send_counts, send_types),
                           LOCAL(part), IN_PARTS))
#undef IN_PARTS

static uint64_t LOCAL(same)(const void *bytes, int at)
{
    (void)at;
    return *(const uint64_t *)bytes;
}

/* The bytes of a call of neighbours are those sent to one of them; they stay 0 if they differ by
 * neighbour. */
COLLECTIVE(Neighbor_allgather, neighbor_allgather,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, COUNT receive_count,
            MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, comm), false,
           bytes_of(send_count, send_type), model_neighbours(model, comm, LOCAL(same), &(uint64_t){bytes}))

COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, const COUNT receive_counts[],
            const DISPLACEMENT displs[], MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_counts, displs, receive_type, comm), false,
           bytes_of(send_count, send_type), model_neighbours(model, comm, LOCAL(same), &(uint64_t){bytes}))

COLLECTIVE(Neighbor_alltoall, neighbor_alltoall,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, COUNT receive_count,
            MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, comm), false,
           bytes_of(send_count, send_type), model_neighbours(model, comm, LOCAL(same), &(uint64_t){bytes}))

COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv,
           (const void *send, const COUNT send_counts[], const DISPLACEMENT send_displs[], MPI_Datatype send_type,
            void *receive, const COUNT receive_counts[], const DISPLACEMENT receive_displs[],
            MPI_Datatype receive_type, MPI_Comm comm),
           (send, send_counts, send_displs, send_type, receive, receive_counts, receive_displs, receive_type, comm),
           false, 0, model_neighbours(model, comm, LOCAL(part), PARTS(send_counts, send_type)))

COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw,
           (const void *send, const COUNT send_counts[], const MPI_Aint send_displs[],
            const MPI_Datatype send_types[], void *receive, const COUNT receive_counts[],
            const MPI_Aint receive_displs[], const MPI_Datatype receive_types[], MPI_Comm comm),
           (send, send_counts, send_displs, send_types, receive, receive_counts, receive_displs, receive_types, comm),
           false, 0, model_neighbours(model, comm, LOCAL(part), PARTS_OF(send_counts, send_types)))
