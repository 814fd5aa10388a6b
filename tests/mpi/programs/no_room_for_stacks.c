/* Threads that want a stack at once where the system has no memory for one. Compiled with -fsanitize=thread. */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stack.h"

enum { THREADS = 2, TIMES = 1000, LEFT = 6 << 20 };    /* bytes: less than a stack */

static pthread_barrier_t together;

static void *want(void *nothing)
{
    pthread_barrier_wait(&together);
    for (int time = 0; time < TIMES; time++)
        stack_wanted();
    return nothing;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned long pages;
    FILE *used = fopen("/proc/self/statm", "r");
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, want, NULL);
    if (!used || fscanf(used, "%lu", &pages) != 1)
        return 3;
    struct rlimit limit = {pages * (unsigned long)sysconf(_SC_PAGESIZE) + LEFT, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 3;
    pthread_barrier_wait(&together);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return stack_top != NULL;
}
