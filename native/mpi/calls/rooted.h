/* Collectives with a root: included once for int and once for MPI_Count. */

/* The parts of a buffer: counts of one type, or with a type for each part. */
typedef struct {
    const COUNT *counts;
    MPI_Datatype type;
    const MPI_Datatype *types;
} LOCAL(Parts);

static uint64_t LOCAL(part)(const void *of, int at)
{
    const LOCAL(Parts) *parts = of;
    return bytes_of(parts->counts[at], parts->types ? parts->types[at] : parts->type);
}

#define PARTS(counts, type) (&(LOCAL(Parts)){counts, type, NULL})
#define PARTS_OF(counts, types) (&(LOCAL(Parts)){counts, MPI_DATATYPE_NULL, types})

COLLECTIVE(Bcast, bcast, (void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm),
           two_level_bcast(buffer, count, type, root, comm, &result),
           bytes_of(count, type), model_bcast(model, root, bytes))

COLLECTIVE(Reduce, reduce,
           (const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (send, receive, count, type, op, root, comm),
           two_level_reduce(send, receive, count, type, op, root, comm, &result),
           bytes_of(count, type), model_reduce(model, root, bytes))

COLLECTIVE(Gather, gather,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, COUNT receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, root, comm),
           two_level_gather(send, send_count, send_type, receive, receive_count, receive_type, root, comm,
                            &result),
           SHARE, model_gather(model, root, bytes))

COLLECTIVE(Scatter, scatter,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, COUNT receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_count, receive_type, root, comm),
           two_level_scatter(send, send_count, send_type, receive, receive_count, receive_type, root, comm,
                             &result),
           of->rank == root ? bytes_of(send_count, send_type) : bytes_of(receive_count, receive_type),
           model_scatter(model, root, bytes))

COLLECTIVE(Gatherv, gatherv,
           (const void *send, COUNT send_count, MPI_Datatype send_type, void *receive, const COUNT receive_counts[],
            const DISPLACEMENT displs[], MPI_Datatype receive_type, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, receive_counts, displs, receive_type, root, comm),
           two_level_gatherv(send, send_count, send_type, receive, BLOCKS(receive_counts, displs),
                             receive_type, root, comm, &result),
           of->rank == root ? bytes_of(receive_counts[root], receive_type) : bytes_of(send_count, send_type),
           model_gatherv(model, root, bytes, LOCAL(part), PARTS(receive_counts, receive_type)))

COLLECTIVE(Scatterv, scatterv,
           (const void *send, const COUNT send_counts[], const DISPLACEMENT displs[], MPI_Datatype send_type,
            void *receive, COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm),
           (send, send_counts, displs, send_type, receive, receive_count, receive_type, root, comm),
           two_level_scatterv(send, BLOCKS(send_counts, displs), send_type, receive, receive_count,
                              receive_type, root, comm, &result),
           of->rank == root ? bytes_of(send_counts[root], send_type) : bytes_of(receive_count, receive_type),
           model_scatterv(model, root, bytes, LOCAL(part), PARTS(send_counts, send_type)))
