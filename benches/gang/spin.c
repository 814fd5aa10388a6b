/* Threads that read the clock all the time, which shows when each of them was on a core.
 *
 *     spin THREADS SECONDS LOG
 *
 * LOG gets a line "thread begin end", nanoseconds of CLOCK_MONOTONIC, for every period without a gap longer than
 * GAP, and at the end a line "thread count" with the rounds of the loop. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GAP 3000000L
#define MOST 100000

struct seen {
    long begin[MOST], end[MOST], stretches;
    unsigned long rounds;
    long until;
};

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *compute(void *argument)
{
    struct seen *seen = argument;
    long last = now();
    volatile double value = 1;
    seen->begin[0] = last;
    while (last < seen->until && seen->stretches < MOST - 1) {
        for (int step = 0; step < 200; step++)
            value = value * 0.999 + 0.001;
        seen->rounds++;
        long time = now();
        if (time - last > GAP) {
            seen->end[seen->stretches++] = last;
            seen->begin[seen->stretches] = time;
        }
        last = time;
    }
    seen->end[seen->stretches++] = last;
    return NULL;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    int threads = atoi(words[1]);
    long until = now() + (long)(atof(words[2]) * 1e9);
    struct seen *seen = calloc(threads, sizeof *seen);
    pthread_t *handles = calloc(threads, sizeof *handles);
    if (threads < 1 || seen == NULL || handles == NULL)
        return 2;
    for (int thread = 0; thread < threads; thread++) {
        seen[thread].until = until;
        if (pthread_create(&handles[thread], NULL, compute, &seen[thread]) != 0)
            return 1;
    }
    for (int thread = 0; thread < threads; thread++)
        pthread_join(handles[thread], NULL);
    FILE *log = fopen(words[3], "w");
    if (log == NULL)
        return 1;
    for (int thread = 0; thread < threads; thread++) {
        for (long at = 0; at < seen[thread].stretches; at++)
            fprintf(log, "%d %ld %ld\n", thread, seen[thread].begin[at], seen[thread].end[at]);
        fprintf(log, "%d %lu\n", thread, seen[thread].rounds);
    }
    return fclose(log) == 0 ? 0 : 1;
}
