/* The two programs of the comparison with SMPI: `alltoall` exchanges blocks of one size; `is` sums
 * up bucket sizes, exchanges key counts and then the keys, as NPB IS does in each ranking.
 * Buffers are one page each, shared: only the times of the messages matter.
 * Prints the seconds of the iterations on rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

static void rank_keys(int processes, long bytes, char *from, char *to)
{
    static int sizes[BUCKETS], totals[BUCKETS];
    int *counts = calloc((size_t)processes, sizeof *counts);
    int *others = calloc((size_t)processes, sizeof *others);
    int *lengths = calloc((size_t)processes, sizeof *lengths);
    int *places = calloc((size_t)processes, sizeof *places);
    for (int i = 0; i < processes; i++)
        lengths[i] = (int)bytes;
    MPI_Allreduce(sizes, totals, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(counts, 1, MPI_INT, others, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv(from, lengths, places, MPI_BYTE, to, lengths, places, MPI_BYTE, MPI_COMM_WORLD);
    free(counts);
    free(others);
    free(lengths);
    free(places);
}

int main(int argc, char **argv)
{
    int processes, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4) {
        if (rank == 0)
            fprintf(stderr, "usage: exchange alltoall|is BYTES ITERATIONS\n");
        MPI_Finalize();
        return 2;
    }
    long bytes = atol(argv[2]);
    int iterations = atoi(argv[3]);
    int sort = strcmp(argv[1], "is") == 0;
    size_t blocks = sort ? 1 : (size_t)processes;
    char *from = malloc((size_t)bytes * blocks), *to = malloc((size_t)bytes * blocks);
    if (!from || !to) {
        fprintf(stderr, "exchange: no memory for %ld bytes\n", bytes);
        return 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < iterations; i++) {
        if (sort)
            rank_keys(processes, bytes, from, to);
        else
            MPI_Alltoall(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9f\n", MPI_Wtime() - begin);
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
