/* Does an allreduce and a broadcast, and checks them, until a file appears; says how many times. All ranks leave in
 * the same round: rank 0 looks for the file.
 *
 *     until_stopped FILE
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int rank, ranks, wrong = 0, rounds = 0, more = 1;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (; more; rounds++) {
        int sum, mine = rank + rounds;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != ranks * (ranks - 1) / 2 + ranks * rounds;
        more = rank ? -1 : access(arguments[1], F_OK) != 0;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        wrong += more < 0;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    if (rank == 0)
        printf("%d rounds\n", rounds);
    MPI_Finalize();
    return wrong != 0;
}
