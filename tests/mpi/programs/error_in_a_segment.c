/* An allreduce in four segments fails at the representative of one site, as the other site gives more than it takes. The
 * ranks of its site end the call, and the next one is right. Of four ranks, two sites in blocks.
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { SEGMENTS = 4, SEGMENT = 32 << 10, ROUNDS = 3 };
enum { COUNT = SEGMENTS * (SEGMENT + 64) / 8, MORE = SEGMENTS * (SEGMENT + 128) / 8 };

static double own[MORE], sum[MORE];

int main(int count, char **arguments)
{
    int rank, wrong = 0;
    alarm(30);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < MORE; i++)
        own[i] = i + rank;
    for (int round = 0; round < ROUNDS; round++) {
        int code = MPI_Allreduce(own, sum, rank < 2 ? COUNT : MORE, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wrong += rank == 0 && code == MPI_SUCCESS;
        wrong += MPI_Allreduce(own, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS;
        for (int i = 0; i < COUNT; i++)
            wrong += sum[i] != 4.0 * i + 6;
    }
    printf("rank %d: wrong %d\n", rank, wrong);
    MPI_Finalize();
    return wrong != 0;
}
