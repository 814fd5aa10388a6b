/* Asks the system for a stack of 64 MiB. Rank 0 prints how many bytes the library has for its own: after a guard of 64 KiB.
 */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK = 64 << 20, GUARD = 64 << 10 };

int main(int count, char **arguments)
{
    struct rlimit limit;
    int rank;
    unsigned long begin, end, guarded = 0;
    char line[4096], rights[5];
    getrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur != STACK) {
        limit.rlim_cur = STACK;
        if (setrlimit(RLIMIT_STACK, &limit) != 0)
            return 3;
        execv("/proc/self/exe", arguments);
    }
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (rank == 0 && maps && fgets(line, sizeof line, maps) && sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3) {
        if (begin == guarded && rights[1] == 'w')
            printf("bytes %lu\n", end - begin + GUARD);
        guarded = rights[0] == '-' && end - begin == GUARD ? end : 0;
    }
    MPI_Finalize();
    return 0;
}
