/* Every rank exchanges 1,000 bytes with both neighbours, so often, and all agree on a sum each time.
 * Prints "sum S" at the end: S is known beforehand. Arguments: rounds, microseconds between two.
 * A third argument is a file: it ends when rank 0 finds it, and prints "rounds R" first.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size;
    char sent[1000] = {0}, got[1000];
    long total = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = atoi(argv[1]), up = (rank + 1) % size, down = (rank + size - 1) % size;
    for (int round = 0; round < rounds; round++) {
        sent[0] = (char)(rank + round);
        MPI_Sendrecv(sent, 1000, MPI_BYTE, up, 0, got, 1000, MPI_BYTE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        total += (unsigned char)got[0];
        MPI_Sendrecv(sent, 1000, MPI_BYTE, down, 1, got, 1000, MPI_BYTE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        total += (unsigned char)got[0];
        usleep((useconds_t)atoi(argv[2]));
        int stop = argc > 3 && rank == 0 && access(argv[3], F_OK) == 0;
        if (argc > 3) MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (stop) rounds = round + 1;
    }
    long sum = 0;
    MPI_Reduce(&total, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && argc > 3) printf("rounds %d\n", rounds);
    if (rank == 0) printf("sum %ld\n", sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
