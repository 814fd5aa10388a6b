/* A reduction fails at its root, as a rank gives more than the root takes, while another rank's part has still to come.
 * What then comes is written nowhere, the rank that sends it ends its call, and the calls after it are right. Of three
 * ranks, each a site.
 *
 *     after_an_error COUNT    reals that the root takes, up to 4,000
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ALL = 4040, ROUNDS = 4, ROOMS = 4 };

static int taken;
static double own[ALL], sum[ALL];

/* Memory as large as the parts of a reduction: likely what was freed last. */
static void take(double *rooms[ROOMS])
{
    for (int room = 0; room < ROOMS; room++) {
        rooms[room] = malloc((size_t)taken * sizeof(double));
        for (int i = 0; i < taken; i++)
            rooms[room][i] = -1;
    }
}

static int changed(double *rooms[ROOMS])
{
    int found = 0;
    for (int room = 0; room < ROOMS; room++) {
        for (int i = 0; i < taken; i++)
            found += rooms[room][i] != -1;
        free(rooms[room]);
    }
    return found;
}

int main(int count, char **arguments)
{
    int rank, wrong = 0;
    double *rooms[ROOMS];
    alarm(30);
    MPI_Init(&count, &arguments);
    taken = atoi(arguments[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < ALL; i++)
        own[i] = i + rank;
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 2)
            usleep(300000);
        int code = MPI_Reduce(own, sum, rank == 1 ? taken + 40 : taken, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        wrong += rank == 0 && code == MPI_SUCCESS;
        if (rank == 0)
            take(rooms);
        wrong += MPI_Reduce(own, sum, taken, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
        for (int i = 0; i < taken && rank == 0; i++)
            wrong += sum[i] != 3 * i + 3;
        wrong += rank == 0 && changed(rooms);
    }
    printf("rank %d: wrong %d\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
