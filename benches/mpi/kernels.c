/* Programs with the patterns of NPB's CG, LU and MG, EP, and computing between the messages: `kernels NAME ROUNDS`. Prints seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 150000 };

static int rank, ranks;
static double field[SIZE], other[SIZE];

static double compute(int from, int to)
{
    double sum = 0;
    for (int at = from; at < to; at++)
        sum += field[at] = 0.5 * (field[at] + other[at]) + 1e-9 * at;
    return sum;
}

static void exchange(int peer, int doubles)
{
    MPI_Request request;
    MPI_Irecv(other, doubles, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
    MPI_Send(field, doubles, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Two long exchanges and two sums over partners a step. */
static void cg(void)
{
    double sum = compute(0, SIZE);
    exchange(ranks - 1 - rank, 1750);
    for (int bit = 1; bit < ranks; bit <<= 1)
        exchange(rank ^ bit, 1);
    compute(0, SIZE);
    exchange(rank ^ 1, 1750);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* 30 planes through a pipeline, a small message each. */
static void lu(void)
{
    for (int plane = 0; plane < 30; plane++) {
        if (rank > 0)
            MPI_Recv(other, 15, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(plane * (SIZE / 30), (plane + 1) * (SIZE / 30));
        if (rank < ranks - 1)
            MPI_Send(field, 15, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD);
    }
}

/* Faces that get smaller from level to level. */
static void mg(void)
{
    for (int face = 4096; face >= 4; face /= 2) {
        compute(0, 20 * face);
        for (int step = 0; step < 2; step++) {
            int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
            MPI_Sendrecv(field, face, MPI_DOUBLE, step ? next : before, 2, other, face, MPI_DOUBLE,
                         step ? before : next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void ep(void)
{
    double sum = 0;
    for (int part = 0; part < 4; part++)
        sum += compute(0, SIZE);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*step)(void);
    } kernels[] = {{"cg", cg}, {"lu", lu}, {"mg", mg}, {"ep", ep}};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int at = 0; count == 3 && at < 4; at++) {
        if (strcmp(kernels[at].name, words[1]))
            continue;
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime();
        for (int step = atoi(words[2]); step; step--)
            kernels[at].step();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            printf("%.6f\n", MPI_Wtime() - began);
    }
    MPI_Finalize();
    return 0;
}
