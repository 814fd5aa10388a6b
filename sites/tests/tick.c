/* The one process of a small guest: counts on the console, ten times a second, and rewrites as many MiB of memory
 * each time as its argument says. Its counter is what a moved guest must not lose. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int count, char **words)
{
    size_t size = (count > 1 ? strtoul(words[1], NULL, 10) : 0) << 20;
    unsigned char *memory = malloc(size + 1);
    for (unsigned long tick = 1;; tick++) {
        for (size_t at = 0; at < size; at += 512)
            memory[at] = (unsigned char)(tick + at / 512);
        printf("tick %lu\n", tick);
        fflush(stdout);
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    }
}
