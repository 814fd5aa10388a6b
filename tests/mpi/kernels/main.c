#include "kernels.h"

int rank, ranks;

static const struct {
    const char *name;
    Kernel *run;
} kernels[] = {
#define K(name) {#name, name}
    K(ring), K(pingpong), K(slow_ring), K(halo), K(conjugate_gradient), K(wavefront), K(self), K(modes),
    K(completion), K(any_source), K(many), K(probes), K(cancelled), K(persistent), K(split), K(churn), K(between),
    K(one_sided), K(threads), K(spawn), K(spawned), K(forking), K(dying), K(blocking), K(nonblocking),
    K(persistent_collectives), K(large_counts), K(neighbours), K(answered_by_all),
};

int main(int count, char **words)
{
    int provided;
    if (count != 3)
        return 2;
    MPI_Init_thread(&count, &words, strcmp(words[1], "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t at = 0; at < sizeof kernels / sizeof *kernels; at++)
        if (!strcmp(kernels[at].name, words[1])) {
            long sum = kernels[at].run(atoi(words[2]));
            if (rank == 0)
                printf("%s %ld\n", words[1], sum);
        }
    MPI_Finalize();
    return 0;
}
