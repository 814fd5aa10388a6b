/* Messages of one size between given ranks, all at once: flows BYTES FROM:TO [FROM:TO ...].
 * Prints the seconds until the first of them has arrived. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, count = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3) {
        fprintf(stderr, "usage: flows BYTES FROM:TO ...\n");
        MPI_Finalize();
        return 2;
    }
    int bytes = atoi(argv[1]), receives = 0;
    char *buffer = malloc((size_t)bytes);
    MPI_Request *requests = calloc((size_t)argc, sizeof *requests);
    if (!buffer || !requests)
        return 1;
    for (int i = 2; i < argc; i++) {
        int from, to;
        if (sscanf(argv[i], "%d:%d", &from, &to) == 2 && to == rank)
            MPI_Irecv(buffer, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[count++]);
    }
    receives = count;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), first = 1e30;
    for (int i = 2; i < argc; i++) {
        int from, to;
        if (sscanf(argv[i], "%d:%d", &from, &to) == 2 && from == rank)
            MPI_Isend(buffer, bytes, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[count++]);
    }
    if (receives > 0) {
        int index;
        MPI_Waitany(receives, requests, &index, MPI_STATUS_IGNORE);
        first = MPI_Wtime() - begin;
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    double all;
    MPI_Reduce(&first, &all, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9f\n", all);
    free(buffer);
    free(requests);
    MPI_Finalize();
    return 0;
}
