/* OpenMP threads that do steps of equal work, with a barrier after each step.
 *
 *     OMP_WAIT_POLICY=active openmp STEPS WORK
 *
 * WORK is the number of additions of a step. */
#include <stdlib.h>

int main(int count, char **words)
{
    long steps = count > 1 ? atol(words[1]) : 10000, work = count > 2 ? atol(words[2]) : 100000;
#pragma omp parallel
    {
        volatile double value = 0;
        for (long step = 0; step < steps; step++) {
            for (long i = 0; i < work; i++)
                value += 1;
#pragma omp barrier
        }
    }
}
