/* Threads that each do collectives on communicators of their own, at once, and make and free them. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 2, COMMUNICATORS = 2, ROUNDS = 6 };

static int wrong;
static MPI_Comm parents[THREADS];

static void *collect(void *of)
{
    MPI_Comm parent = *(MPI_Comm *)of, comm;
    int rank, ranks, bad = 0;
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Comm_dup(parent, &comm);
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &ranks);
        for (int round = 0; round < ROUNDS; round++) {
            int root = round % ranks, value = rank == root ? round : -1, sum, all[64];
            MPI_Bcast(&value, 1, MPI_INT, root, comm);
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
            MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, root, comm);
            MPI_Barrier(comm);
            bad += value != round || sum != ranks * (ranks - 1) / 2 || (rank == root && all[ranks - 1] != ranks - 1);
        }
        MPI_Comm_free(&comm);
    }
    __atomic_fetch_add(&wrong, bad, __ATOMIC_RELAXED);
    return NULL;
}

int main(int count, char **arguments)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 3;
    }
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, collect, &parents[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&parents[i]);
    MPI_Finalize();
    return wrong != 0;
}
