/* OpenMP threads that do endless steps of equal work, with a barrier after each step.
 *
 *     OMP_WAIT_POLICY=active counting WORK FILE
 *
 * WORK is the number of additions of a step; FILE gets the number of steps so far, about twenty times a second. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    long work = atol(words[1]), steps = 0;
    FILE *file = fopen(words[2], "w");
    if (file == NULL)
        return 1;
    double written = 0;
#pragma omp parallel
    for (;;) {
        volatile double sum = 0;
        for (long addition = 0; addition < work; addition++)
            sum += addition;
#pragma omp barrier
#pragma omp master
        {
            steps++;
            if (now() - written > 0.05) {
                rewind(file);
                fprintf(file, "%ld\n", steps);
                fflush(file);
                written = now();
            }
        }
    }
}
