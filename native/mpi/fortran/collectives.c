/* Collectives, from Fortran. */
#include "fortran.h"

#if FORTRAN_WRAPPERS

/* Each collective, with its nonblocking form. */
#define UNPACK(...) __VA_ARGS__
#define COLLECTIVE(name, Name, PARAMETERS, ARGUMENTS)                                          \
    FORTRAN(name, (UNPACK PARAMETERS, Int code), MPI_##Name(UNPACK ARGUMENTS))                 \
    FORTRAN_REQUEST(i##name, (UNPACK PARAMETERS, Int request, Int code), MPI_I##name(UNPACK ARGUMENTS, &made))

#define SEND char *send, Int count, Int type
#define SENT BUFFER(send), *count, TYPE(type)
#define RECEIVE char *receive, Int receive_count, Int receive_type
#define RECEIVED BUFFER(receive), *receive_count, TYPE(receive_type)
#define SENDV char *send, Int counts, Int displs, Int type
#define SENTV BUFFER(send), counts, displs, TYPE(type)
#define RECEIVEV char *receive, Int receive_counts, Int receive_displs, Int receive_type
#define RECEIVEDV BUFFER(receive), receive_counts, receive_displs, TYPE(receive_type)

COLLECTIVE(barrier, Barrier, (Int comm), (COMM(comm)))
COLLECTIVE(bcast, Bcast, (SEND, Int root, Int comm), (SENT, *root, COMM(comm)))
COLLECTIVE(gather, Gather, (SEND, RECEIVE, Int root, Int comm), (SENT, RECEIVED, *root, COMM(comm)))
COLLECTIVE(gatherv, Gatherv, (SEND, RECEIVEV, Int root, Int comm), (SENT, RECEIVEDV, *root, COMM(comm)))
COLLECTIVE(scatter, Scatter, (SEND, RECEIVE, Int root, Int comm), (SENT, RECEIVED, *root, COMM(comm)))
COLLECTIVE(scatterv, Scatterv, (SENDV, RECEIVE, Int root, Int comm), (SENTV, RECEIVED, *root, COMM(comm)))
COLLECTIVE(allgather, Allgather, (SEND, RECEIVE, Int comm), (SENT, RECEIVED, COMM(comm)))
COLLECTIVE(allgatherv, Allgatherv, (SEND, RECEIVEV, Int comm), (SENT, RECEIVEDV, COMM(comm)))
COLLECTIVE(alltoall, Alltoall, (SEND, RECEIVE, Int comm), (SENT, RECEIVED, COMM(comm)))
COLLECTIVE(alltoallv, Alltoallv, (SENDV, RECEIVEV, Int comm), (SENTV, RECEIVEDV, COMM(comm)))
COLLECTIVE(neighbor_allgather, Neighbor_allgather, (SEND, RECEIVE, Int comm), (SENT, RECEIVED, COMM(comm)))
COLLECTIVE(neighbor_allgatherv, Neighbor_allgatherv, (SEND, RECEIVEV, Int comm), (SENT, RECEIVEDV, COMM(comm)))
COLLECTIVE(neighbor_alltoall, Neighbor_alltoall, (SEND, RECEIVE, Int comm), (SENT, RECEIVED, COMM(comm)))
COLLECTIVE(neighbor_alltoallv, Neighbor_alltoallv, (SENDV, RECEIVEV, Int comm), (SENTV, RECEIVEDV, COMM(comm)))

#define REDUCE char *send, char *receive, Int count, Int type, Int op
#define REDUCED BUFFER(send), BUFFER(receive), *count, TYPE(type), OP(op)
COLLECTIVE(reduce, Reduce, (REDUCE, Int root, Int comm), (REDUCED, *root, COMM(comm)))
COLLECTIVE(allreduce, Allreduce, (REDUCE, Int comm), (REDUCED, COMM(comm)))
COLLECTIVE(reduce_scatter_block, Reduce_scatter_block, (REDUCE, Int comm), (REDUCED, COMM(comm)))
COLLECTIVE(scan, Scan, (REDUCE, Int comm), (REDUCED, COMM(comm)))
COLLECTIVE(exscan, Exscan, (REDUCE, Int comm), (REDUCED, COMM(comm)))
COLLECTIVE(reduce_scatter, Reduce_scatter,
           (char *send, char *receive, Int counts, Int type, Int op, Int comm),
           (BUFFER(send), BUFFER(receive), counts, TYPE(type), OP(op), COMM(comm)))

/* Alltoallw, whose types are given for each rank. */
static int alltoallw(char *send, Int counts, Int displs, Int types, char *receive, Int receive_counts,
                     Int receive_displs, Int receive_types, Int comm, MPI_Request *made)
{
    MPI_Comm handle = COMM(comm);
    int size, inter = 0;
    PMPI_Comm_test_inter(handle, &inter);
    if (inter)
        PMPI_Comm_remote_size(handle, &size);
    else
        PMPI_Comm_size(handle, &size);
    bool in_place = buffer_of(send) == MPI_IN_PLACE;
    MPI_Datatype *out = malloc(2 * (size_t)size * sizeof *out), *in = out + size;
    if (!out)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < size; rank++) {
        out[rank] = in_place ? MPI_DATATYPE_NULL : TYPE(&types[rank]);
        in[rank] = TYPE(&receive_types[rank]);
    }
    int result = made ? MPI_Ialltoallw(BUFFER(send), counts, displs, out, BUFFER(receive), receive_counts,
                                       receive_displs, in, handle, made)
                      : MPI_Alltoallw(BUFFER(send), counts, displs, out, BUFFER(receive), receive_counts,
                                      receive_displs, in, handle);
    if (!made)
        free(out);    /* otherwise MPI may read the types until the call completes, and that moment is unknown */
    return result;
}
#define ALLTOALLW                                                                                     \
    char *send, Int counts, Int displs, Int types, char *receive, Int receive_counts, Int receive_displs, \
        Int receive_types, Int comm
FORTRAN(alltoallw, (ALLTOALLW, Int code),
        alltoallw(send, counts, displs, types, receive, receive_counts, receive_displs, receive_types, comm, NULL))
FORTRAN_REQUEST(ialltoallw, (ALLTOALLW, Int request, Int code),
                alltoallw(send, counts, displs, types, receive, receive_counts, receive_displs, receive_types, comm,
                          &made))

#endif
