/* Does one collective of a few bytes again and again, with each rank as root in turn.
 *
 *     one_collective NAME ROUNDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static int rank, ranks, wrong;

static void check(int found, int expected)
{
    wrong += found != expected;
}

static void once(const char *name, int root, int round)
{
    int mine = rank + round, one[MOST], all[MOST], counts[MOST], starts[MOST], sum = 0;
    for (int i = 0; i < ranks; i++) {
        one[i] = mine * 100 + i;
        counts[i] = 1;
        starts[i] = i;
    }
    if (!strcmp(name, "barrier"))
        MPI_Barrier(MPI_COMM_WORLD);
    else if (!strcmp(name, "bcast")) {
        MPI_Bcast(&mine, 1, MPI_INT, root, MPI_COMM_WORLD);
        check(mine, root + round);
    } else if (!strcmp(name, "reduce")) {
        MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        check(sum, rank == root ? ranks * (ranks - 1) / 2 : 0);
    } else if (!strcmp(name, "allreduce")) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        check(sum, ranks * (ranks - 1) / 2);
    } else if (!strcmp(name, "gather") || !strcmp(name, "gatherv")) {
        if (name[6])
            MPI_Gatherv(&mine, 1, MPI_INT, all, counts, starts, MPI_INT, root, MPI_COMM_WORLD);
        else
            MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < ranks && rank == root; i++)
            check(all[i], i + round);
    } else if (!strcmp(name, "scatter") || !strcmp(name, "scatterv")) {
        if (name[7])
            MPI_Scatterv(one, counts, starts, MPI_INT, all, 1, MPI_INT, root, MPI_COMM_WORLD);
        else
            MPI_Scatter(one, 1, MPI_INT, all, 1, MPI_INT, root, MPI_COMM_WORLD);
        check(all[0], (root + round) * 100 + rank);
    } else if (!strcmp(name, "allgather") || !strcmp(name, "allgatherv")) {
        if (name[9])
            MPI_Allgatherv(&mine, 1, MPI_INT, all, counts, starts, MPI_INT, MPI_COMM_WORLD);
        else
            MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < ranks; i++)
            check(all[i], i + round);
    } else {
        MPI_Alltoall(one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < ranks; i++)
            check(all[i], (i + round) * 100 + rank);
    }
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < atoi(arguments[2]); round++)
        once(arguments[1], round % ranks, round);
    if (wrong)
        fprintf(stderr, "rank %d: %d wrong results\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
