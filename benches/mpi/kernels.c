/* Kernels like NPB's: `kernels NAME STEPS` prints the seconds of STEPS steps, `kernels NAME STEPS pairs` the
 * microseconds that watching adds to a step (pairs.h). */
#include <string.h>

#include "pairs.h"

enum { SIZE = 150000, BATCH = 2 };

static int rank, ranks;
static double field[SIZE], other[SIZE];

static double compute(int from, int to)
{
    double sum = 0;
    for (int at = from; at < to; at++)
        sum += field[at] = 0.5 * (field[at] + other[at]) + 1e-9 * at;
    return sum;
}

#define LOCAL(name) name
#define CALL(name) MPI_##name
#include "steps.h"
#undef LOCAL
#undef CALL
#define LOCAL(name) name##_unseen
#define CALL(name) PMPI_##name
#include "steps.h"

static const struct {
    const char *name;
    Step *seen, *unseen;
} kernels[] = {{"cg", cg, cg_unseen}, {"lu", lu, lu_unseen}, {"mg", mg, mg_unseen}, {"ep", ep, ep_unseen}};

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int at = 0; count >= 3 && at < 4; at++) {
        int steps = atoi(words[2]);
        if (strcmp(kernels[at].name, words[1]))
            continue;
        if (count > 3) {
            print_pairs((Pairs){kernels[at].seen, kernels[at].unseen, BATCH, steps / (2 * BATCH)}, 1e-6);
            continue;
        }
        double seconds = batch(kernels[at].seen, steps);
        if (rank == 0)
            printf("%.6f\n", seconds);
    }
    MPI_Finalize();
    return 0;
}
