/* Ranks 0 and 1 exchange a megabyte so often, and so do 2 and 3; all ranks send a byte to each other once.
 * Arguments: how often, and a file: the ranks end when it is there.
 */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bytes = 1 << 20, partner = rank ^ 1;
    char *sent = calloc(1, bytes), *got = calloc(1, bytes);
    for (int round = 0; round < atoi(argv[1]); round++)
        MPI_Sendrecv(sent, bytes, MPI_BYTE, partner, 0, got, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    for (int other = 0; other < size; other++)
        MPI_Sendrecv(sent, 1, MPI_BYTE, (rank + other) % size, 1, got, 1, MPI_BYTE, (rank - other + size) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (access(argv[2], F_OK) != 0)
        usleep(100000);
    MPI_Finalize();
    return 0;
}
