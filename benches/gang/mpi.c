/* MPI ranks that do steps of equal work, with an Allreduce after each step.
 *
 *     mpiexec -n 2 mpi STEPS WORK
 *
 * WORK is the number of additions of a step. */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **words)
{
    long steps = count > 1 ? atol(words[1]) : 10000, work = count > 2 ? atol(words[2]) : 100000;
    double mine = 1, sum;
    MPI_Init(&count, &words);
    for (long step = 0; step < steps; step++) {
        volatile double value = 0;
        for (long i = 0; i < work; i++)
            value += 1;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
