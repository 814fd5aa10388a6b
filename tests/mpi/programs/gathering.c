/* A gather of blocks of different sizes, of which the representative wants its own: it waits for no other. The others
 * give theirs only after that. Of three ranks; linked with the library's sources.
 */
#include <stdio.h>
#include <unistd.h>

#include "collectives/stages.h"

enum { RANKS = 3, OWN = 100000, OTHERS = 40000, GO = 9 };

int main(int count, char **arguments)
{
    static char part[OWN + 2 * OTHERS];
    int sizes[RANKS] = {OWN, OTHERS, OTHERS}, at[RANKS] = {0, OWN, OWN + OTHERS};
    int place[RANKS] = {0, 1, 2}, world[RANKS] = {0, 1, 2}, rank, wrong = 0;
    alarm(20);
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Levels levels = {.rank = rank, .size = RANKS, .world = world, .members = RANKS, .place = place,
                     .whole = MPI_COMM_WORLD, .inside = MPI_COMM_WORLD, .tag = 3,
                     .own = {.rank = rank, .size = RANKS, .peers = RANKS, .world = world}};
    Gathering gathering;
    for (int i = 0; i < sizes[rank]; i++)
        part[at[rank] + i] = (char)(rank + 1);
    if (rank)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int code = gathering_begin(&gathering, &levels, part, sizes, 0);
    if (rank == 0) {
        code = gathering_wait(&gathering, OWN);
        for (int other = 1; other < RANKS; other++)
            MPI_Send(NULL, 0, MPI_BYTE, other, GO, MPI_COMM_WORLD);
        code = gathering_wait(&gathering, OWN + 1);
        wrong += part[OWN] != 2;
    }
    wrong += gathering_end(&gathering, code) != MPI_SUCCESS;
    for (int i = 0; i < RANKS && rank == 0; i++)
        wrong += part[at[i]] != i + 1 || part[at[i] + sizes[i] - 1] != i + 1;
    printf("wrong %d\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
