/* Rank i and rank i + n/2 talk a lot, all ranks agree now and then: a program whose chatty pairs a placement by
 * rank halves tears apart. What it computes depends on every message, and is the same wherever it runs.
 *
 *     pairs MILLISECONDS ITERATIONS    each iteration takes at least that long
 *     pairs MILLISECONDS FILE          iterates until rank 0 finds the file
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { VALUES = 512, EXCHANGES = 4, TABLE = 256 };

static uint64_t mix(uint64_t value)
{
    value ^= value >> 31;
    value *= 0x9e3779b97f4a7c15u;
    return value ^ value >> 29;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 3 || ranks % 2) {
        fprintf(stderr, "usage: pairs MILLISECONDS ITERATIONS|FILE, on an even number of ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double least = atof(words[1]) / 1000;
    long most = strtol(words[2], NULL, 10);
    int partner = (rank + ranks / 2) % ranks;
    uint64_t mine[VALUES], theirs[VALUES], table[TABLE] = { 0 }, total = 0, sum[2];
    for (int i = 0; i < VALUES; i++)
        mine[i] = mix((uint64_t)rank * VALUES + (uint64_t)i + 1);
    long iteration = 0;
    for (;;) {
        double began = MPI_Wtime();
        for (int exchange = 0; exchange < EXCHANGES; exchange++) {
            MPI_Sendrecv(mine, VALUES, MPI_UINT64_T, partner, 0, theirs, VALUES, MPI_UINT64_T, partner, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < VALUES; i++)
                mine[i] = mix(mine[i] + theirs[(i + 1) % VALUES] + total);
        }
        iteration++;
        int stop = rank == 0 && (most > 0 ? iteration >= most : access(words[2], F_OK) == 0);
        uint64_t part[2] = { mine[iteration % VALUES], (uint64_t)stop };
        MPI_Allreduce(part, sum, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        total = mix(total + sum[0]);
        table[iteration % TABLE] = total;
        MPI_Bcast(table, TABLE, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        double left = least - (MPI_Wtime() - began);
        if (left > 0)
            nanosleep(&(struct timespec){ .tv_nsec = (long)(left * 1e9) % 1000000000, .tv_sec = (long)left }, NULL);
        if (rank == 0 && iteration % 50 == 0) {
            printf("iteration %ld, %.1f ms\n", iteration, (MPI_Wtime() - began) * 1e3);
            fflush(stdout);
        }
        if (sum[1])
            break;
    }
    if (rank == 0)
        printf("%ld iterations, checksum %016llx\n", iteration, (unsigned long long)total);
    MPI_Finalize();
    return 0;
}
