/* A program that computes: every rank works on numbers of its own, and all agree once in an iteration.
 *
 *     compute ITERATIONS    runs this number of iterations
 *     compute FILE          iterates until rank 0 finds the file
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 20000000 };

static uint64_t mix(uint64_t value)
{
    value ^= value >> 31;
    value *= 0x9e3779b97f4a7c15u;
    return value ^ value >> 29;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count != 2) {
        fprintf(stderr, "usage: compute ITERATIONS|FILE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long most = strtol(words[1], NULL, 10), iteration = 0;
    uint64_t mine = (uint64_t)rank + 1, sum[2];
    do {
        double began = MPI_Wtime();
        for (int step = 0; step < STEPS; step++)
            mine = mix(mine + (uint64_t)step);
        iteration++;
        uint64_t part[2] = { mine,
                             rank == 0 && (most > 0 ? iteration >= most : access(words[1], F_OK) == 0) };
        MPI_Allreduce(part, sum, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        mine = mix(mine + sum[0]);
        if (rank == 0) {
            printf("iteration %ld, %.1f ms\n", iteration, (MPI_Wtime() - began) * 1e3);
            fflush(stdout);
        }
    } while (!sum[1]);
    if (rank == 0)
        printf("%ld iterations, checksum %016llx\n", iteration, (unsigned long long)sum[0]);
    MPI_Finalize();
    return 0;
}
