/* Each rank sends to the next one, and the last to the first. Prints "RANK NODE sent BYTES bytes to RANK". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1 << 16 };

int main(int argc, char **argv)
{
    static char out[BYTES], in[BYTES];
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    out[0] = (char)rank;
    MPI_Sendrecv(out, BYTES, MPI_CHAR, next, 0, in, BYTES, MPI_CHAR, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (in[0] != (char)before)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const char *node = getenv("SLURMD_NODENAME");
    printf("%d %s sent %d bytes to %d\n", rank, node ? node : "?", BYTES, next);
    MPI_Finalize();
    return 0;
}
