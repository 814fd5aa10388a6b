/* Steps with the message patterns of NPB's CG, LU, MG and EP, and with computing between messages. Included once with
 * calls that may be watched and once with calls that cannot. */

static void LOCAL(exchange)(int peer, int doubles)
{
    MPI_Request request;
    CALL(Irecv)(other, doubles, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
    CALL(Send)(field, doubles, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
    CALL(Wait)(&request, MPI_STATUS_IGNORE);
}

/* Per step: two long exchanges, and two sums over partners. */
static void LOCAL(cg)(void)
{
    double sum = compute(0, SIZE);
    LOCAL(exchange)(ranks - 1 - rank, 1750);
    for (int bit = 1; bit < ranks; bit <<= 1)
        LOCAL(exchange)(rank ^ bit, 1);
    compute(0, SIZE);
    LOCAL(exchange)(rank ^ 1, 1750);
    CALL(Allreduce)(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* 30 planes through a pipeline, a small message each. */
static void LOCAL(lu)(void)
{
    for (int plane = 0; plane < 30; plane++) {
        if (rank > 0)
            CALL(Recv)(other, 15, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(plane * (SIZE / 30), (plane + 1) * (SIZE / 30));
        if (rank < ranks - 1)
            CALL(Send)(field, 15, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD);
    }
}

/* Faces that get smaller from level to level. */
static void LOCAL(mg)(void)
{
    for (int face = 4096; face >= 4; face /= 2) {
        compute(0, 20 * face);
        for (int step = 0; step < 2; step++) {
            int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
            CALL(Sendrecv)(field, face, MPI_DOUBLE, step ? next : before, 2, other, face, MPI_DOUBLE,
                           step ? before : next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void LOCAL(ep)(void)
{
    double sum = 0;
    for (int part = 0; part < 4; part++)
        sum += compute(0, SIZE);
    CALL(Allreduce)(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
