/* Point-to-point. */
#include "kernels.h"

#define WORLD MPI_COMM_WORLD

/* 4 bytes to the next rank. */
long ring(int rounds)
{
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[2];
        int got = 0, given = rank + round;
        MPI_Irecv(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, WORLD, &requests[0]);
        MPI_Isend(&given, 1, MPI_INT, (rank + 1) % ranks, 0, WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        sum += got;
    }
    return sum;
}

/* Ranks 0 and 1, 8 bytes. */
long pingpong(int rounds)
{
    double ball = 1;
    for (int round = 0; round < rounds && rank < 2; round++) {
        if (rank == 0)
            MPI_Send(&ball, 1, MPI_DOUBLE, 1, 0, WORLD);
        MPI_Recv(&ball, 1, MPI_DOUBLE, 1 - rank, 0, WORLD, MPI_STATUS_IGNORE);
        ball++;
        if (rank == 1)
            MPI_Send(&ball, 1, MPI_DOUBLE, 0, 0, WORLD);
    }
    return (long)ball;
}

/* The ring with time between its rounds. In the middle it waits for the file HALFWAY, if that is set. */
long slow_ring(int rounds)
{
    const char *halfway = getenv("HALFWAY");
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        while (halfway && round == rounds / 2 && access(halfway, F_OK))
            usleep(5000);
        sum += ring(1);
        usleep(5000);
    }
    return sum;
}

/* A line of ranks; 3 columns of a matrix, one by one in memory, to each neighbour. */
long halo(int rounds)
{
    enum { ROWS = 10, COLUMNS = 8, WIDTH = 3 };
    static double field[ROWS][COLUMNS];
    MPI_Comm line;
    MPI_Datatype columns;
    int below, above;
    MPI_Cart_create(WORLD, 1, &ranks, &(int){0}, 0, &line);
    MPI_Cart_shift(line, 0, 1, &below, &above);
    MPI_Type_vector(ROWS, WIDTH, COLUMNS, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    field[0][0] = rank + 1;
    for (int round = 0; round < rounds; round++) {
        MPI_Sendrecv(&field[0][0], 1, columns, above, 0, &field[0][3], 1, columns, below, 0, line, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&field[0][0], 1, columns, below, 1, &field[0][3], 1, columns, above, 1, line, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&columns);
    MPI_Comm_free(&line);
    return (long)field[0][3];
}

/* As NPB's CG: an exchange of 1000 bytes with the rank across, then two sums of 8 bytes by recursive doubling. */
long conjugate_gradient(int rounds)
{
    char given[1000] = {0}, got[1000];
    double sum = rank;
    for (int round = 0; round < rounds; round++) {
        MPI_Request request;
        MPI_Irecv(got, 1000, MPI_BYTE, ranks - 1 - rank, 0, WORLD, &request);
        MPI_Send(given, 1000, MPI_BYTE, ranks - 1 - rank, 0, WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int bit = 1; bit < ranks; bit <<= 1) {
            double other;
            MPI_Sendrecv(&sum, 1, MPI_DOUBLE, rank ^ bit, 1, &other, 1, MPI_DOUBLE, rank ^ bit, 1, WORLD,
                         MPI_STATUS_IGNORE);
            sum = (sum + other) / 2;
        }
    }
    return (long)(1000 * sum);
}

/* As NPB's LU: 40 bytes down a pipeline, plane by plane, from whoever is before this rank. */
long wavefront(int rounds)
{
    double plane[5] = {0};
    for (int round = 0; round < rounds; round++) {
        if (rank > 0)
            MPI_Recv(plane, 5, MPI_DOUBLE, round % 2 ? MPI_ANY_SOURCE : rank - 1, 0, WORLD, MPI_STATUS_IGNORE);
        plane[0]++;
        if (rank < ranks - 1)
            MPI_Send(plane, 5, MPI_DOUBLE, rank + 1, 0, WORLD);
    }
    return (long)plane[0];
}

/* 4 bytes to itself, and to MPI_PROC_NULL. */
long self(int rounds)
{
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        int got = 0;
        MPI_Sendrecv(&round, 1, MPI_INT, rank, 0, &got, 1, MPI_INT, rank, 0, WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&round, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
        MPI_Recv(&got, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, MPI_STATUS_IGNORE);
        sum += got;
    }
    return sum;
}

/* Every way to send, 4 bytes each, from even ranks to the next; the receives are posted before. */
long modes(int rounds)
{
    static char buffer[1 << 16];
    void *back;
    int size, sum = 0;
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[8];
        int got[8];
        for (int way = 0; way < 8 && rank % 2; way++)
            MPI_Irecv(&got[way], 1, MPI_INT, rank - 1, way, WORLD, &requests[way]);
        MPI_Barrier(WORLD);
        if (rank % 2 == 0) {
            MPI_Send(&round, 1, MPI_INT, rank + 1, 0, WORLD);
            MPI_Ssend(&round, 1, MPI_INT, rank + 1, 1, WORLD);
            MPI_Bsend(&round, 1, MPI_INT, rank + 1, 2, WORLD);
            MPI_Rsend(&round, 1, MPI_INT, rank + 1, 3, WORLD);
            MPI_Isend(&round, 1, MPI_INT, rank + 1, 4, WORLD, &requests[4]);
            MPI_Issend(&round, 1, MPI_INT, rank + 1, 5, WORLD, &requests[5]);
            MPI_Ibsend(&round, 1, MPI_INT, rank + 1, 6, WORLD, &requests[6]);
            MPI_Irsend(&round, 1, MPI_INT, rank + 1, 7, WORLD, &requests[7]);
        }
        MPI_Waitall(rank % 2 ? 8 : 4, rank % 2 ? requests : requests + 4, MPI_STATUSES_IGNORE);
        sum += round;
    }
    MPI_Buffer_detach(&back, &size);
    return sum;
}
