/* Wrong calls, as MPI_X and as PMPI_X: the same class of error, and the communicator's own error handler hears of each
 * once. All ranks do the same wrong.
 */
#include <mpi.h>
#include <stdio.h>

static int heard, rank;
static MPI_Comm of;

static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    heard += *comm == of;
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static int wrong;

static void compare(const char *what, int ours, int ours_heard, int mpis, int mpis_heard)
{
    if (class_of(ours) != class_of(mpis) || ours_heard != mpis_heard || mpis == MPI_SUCCESS) {
        wrong++;
        fprintf(stderr, "rank %d: %s: class %d, heard %d; of MPI %d, %d\n", rank, what, class_of(ours), ours_heard,
                class_of(mpis), mpis_heard);
    }
}

#define BOTH(CALL, ...)                                      \
    do {                                                     \
        heard = 0;                                           \
        int ours = MPI_##CALL(__VA_ARGS__), first = heard;   \
        heard = 0;                                           \
        int mpis = PMPI_##CALL(__VA_ARGS__);                 \
        compare(#CALL "(" #__VA_ARGS__ ")", ours, first, mpis, heard); \
    } while (0)

int main(int count, char **arguments)
{
    int ranks, a[64] = {0}, b[64] = {0};
    double x = 1, y;
    MPI_Errhandler handler;
    MPI_Init(&count, &arguments);
    MPI_Comm_dup(MPI_COMM_WORLD, &of);
    MPI_Comm_rank(of, &rank);
    MPI_Comm_size(of, &ranks);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(of, handler);
    MPI_Barrier(of);
    BOTH(Bcast, a, -1, MPI_INT, 0, of);
    BOTH(Bcast, a, 1, MPI_DATATYPE_NULL, 0, of);
    BOTH(Bcast, a, 1, MPI_INT, ranks, of);
    BOTH(Bcast, a, 1, MPI_INT, -7, of);
    for (int root = -4; root < 0; root++) {
        BOTH(Bcast, a, 1, MPI_INT, root, of);
        BOTH(Reduce, a, b, 1, MPI_INT, MPI_SUM, root, of);
        BOTH(Gather, a, 1, MPI_INT, b, 1, MPI_INT, root, of);
        BOTH(Scatter, a, 1, MPI_INT, b, 1, MPI_INT, root, of);
    }
    BOTH(Reduce, a, b, 1, MPI_INT, MPI_OP_NULL, 0, of);
    BOTH(Reduce, &x, &y, 1, MPI_DOUBLE, MPI_BAND, 0, of);
    BOTH(Allreduce, &x, &y, 1, MPI_DOUBLE, MPI_BAND, of);
    BOTH(Allreduce, a, b, -1, MPI_INT, MPI_SUM, of);
    BOTH(Gather, a, -1, MPI_INT, b, -1, MPI_INT, 0, of);
    BOTH(Scatter, a, 1, MPI_INT, b, 1, MPI_INT, ranks, of);
    BOTH(Allgather, a, 1, MPI_INT, b, 1, MPI_DATATYPE_NULL, of);
    BOTH(Alltoall, a, -1, MPI_INT, b, -1, MPI_INT, of);
    MPI_Bcast(a, 1, MPI_INT, 0, of); /* and all goes on */
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&of);
    MPI_Finalize();
    return wrong != 0;
}
