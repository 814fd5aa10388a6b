/* Collectives of 300,000 bytes, each checked: a broadcast whose ranks describe the data by different types, a reduction,
 * both with each rank as root in turn, an allreduce and an allgather.
 *
 *     large_collectives ROUNDS [CALL]    with "allgatherv", one of parts of different sizes
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 75000 };

static int rank, ranks, wrong;

static int *ints(int count, int first)
{
    int *made = malloc((size_t)count * sizeof *made);
    for (int i = 0; i < count; i++)
        made[i] = first + i;
    return made;
}

static void check(const int *found, int count, int first, int step)
{
    for (int i = 0; i < count; i++)
        if (found[i] != first + step * i) {
            wrong++;
            return;
        }
}

/* Odd ranks have the data in threes with a gap after them. */
static void bcast(int root)
{
    enum { PARTS = COUNT / 3 };
    MPI_Datatype three, spaced;
    int *buffer = ints(4 * PARTS, rank == root ? 0 : -9), *flat = ints(COUNT, 0);
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_create_resized(three, 0, 16, &spaced);
    MPI_Type_commit(&spaced);
    for (int i = 0; i < COUNT && rank == root && rank % 2; i++)
        buffer[i / 3 * 4 + i % 3] = i;
    if (rank % 2)
        MPI_Bcast(buffer, PARTS, spaced, root, MPI_COMM_WORLD);
    else
        MPI_Bcast(buffer, COUNT, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        flat[i] = rank % 2 ? buffer[i / 3 * 4 + i % 3] : buffer[i];
    check(flat, COUNT, 0, 1);
    MPI_Type_free(&three);
    MPI_Type_free(&spaced);
    free(buffer);
    free(flat);
}

static void reduce(int root)
{
    int *mine = ints(COUNT, rank), *sum = ints(COUNT, -1);
    MPI_Reduce(mine, sum, COUNT, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    if (rank == root)
        check(sum, COUNT, ranks * (ranks - 1) / 2, ranks);
    free(mine);
    free(sum);
}

static void allreduce(void)
{
    int *sum = ints(COUNT, rank);
    MPI_Allreduce(MPI_IN_PLACE, sum, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum, COUNT, ranks * (ranks - 1) / 2, ranks);
    free(sum);
}

static void allgather(void)
{
    int *mine = ints(COUNT, rank * COUNT), *all = ints(ranks * COUNT, -1);
    MPI_Allgather(mine, COUNT, MPI_INT, all, COUNT, MPI_INT, MPI_COMM_WORLD);
    check(all, ranks * COUNT, 0, 1);
    free(mine);
    free(all);
}

/* Of rank 0 nothing, of the others less and more than a segment. */
static void allgatherv(void)
{
    int counts[64], starts[64], total = 0;
    for (int i = 0; i < ranks; i++) {
        counts[i] = i % 3 * COUNT / 2 + i * 7;
        starts[i] = total;
        total += counts[i];
    }
    int *mine = ints(counts[rank], starts[rank]), *all = ints(total, -1);
    MPI_Allgatherv(mine, counts[rank], MPI_INT, all, counts, starts, MPI_INT, MPI_COMM_WORLD);
    check(all, total, 0, 1);
    free(mine);
    free(all);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *only = count > 2 ? words[2] : "";
    for (int round = 0; round < atoi(words[1]); round++) {
        if (!*only || !strcmp(only, "bcast"))
            bcast(round % ranks);
        if (!*only || !strcmp(only, "reduce"))
            reduce(round % ranks);
        if (!*only || !strcmp(only, "allreduce"))
            allreduce();
        if (!*only || !strcmp(only, "allgather"))
            allgather();
        if (!strcmp(only, "allgatherv"))
            allgatherv();
    }
    if (wrong)
        fprintf(stderr, "rank %d: %d wrong results\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
