/* Times a broadcast from rank to rank in chunks, as in native/mpi/collectives/stages.c, and the MPI's own.
 *
 *     chain FILE REPEATS BYTES...     prints "BYTES chain|broadcast SECONDS..."
 *
 * FILE is shared memory, in which the ranks meet. A repeat lasts from the moment when all ranks begin until the last one has finished.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_RANKS = 256, MOST_REPEATS = 256, CHUNK = 16 << 10, TAG = 4, WARM = 2, WAYS = 2 };

typedef struct {
    _Atomic int here, rounds;
    double begin, done[MOST_RANKS];
} Meeting;

static const double PAUSE = 0.03;
static Meeting *meeting;
static int rank, ranks;
static char *data;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void sleep_until(double moment)
{
    struct timespec time = {(time_t)moment, (long)((moment - (double)(time_t)moment) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* Waits for all ranks. Returns the moment at which all go on, which the last rank to arrive sets. */
static double meet(double pause)
{
    int round = meeting->rounds;
    if (atomic_fetch_add(&meeting->here, 1) == ranks - 1) {
        meeting->here = 0;
        meeting->begin = now() + pause;
        meeting->rounds++;
    }
    while (meeting->rounds == round) {
        int found; /* sends that MPI calls complete may still need its help */
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        sleep_until(now() + 2e-4);
    }
    return meeting->begin;
}

static void chain(int bytes)
{
    int chunks = (bytes - 1) / CHUNK + 1, sent = 0;
    MPI_Request *in = malloc(2 * (size_t)chunks * sizeof *in), *out = in + chunks;
#define PART(i) data + (i) * CHUNK, bytes - (i) * CHUNK < CHUNK ? bytes - (i) * CHUNK : CHUNK, MPI_BYTE
    for (int i = 0; i < chunks && rank > 0; i++)
        MPI_Irecv(PART(i), rank - 1, TAG, MPI_COMM_WORLD, &in[i]);
    for (int i = 0; i < chunks; i++) {
        if (rank > 0)
            MPI_Wait(&in[i], MPI_STATUS_IGNORE);
        if (rank + 1 < ranks)
            MPI_Isend(PART(i), rank + 1, TAG, MPI_COMM_WORLD, &out[sent++]);
    }
#undef PART
    MPI_Waitall(sent, out, MPI_STATUSES_IGNORE);
    free(in);
}

static double once(int way, int bytes)
{
    double begin = meet(PAUSE), last = 0;
    sleep_until(begin);
    if (way == 0)
        chain(bytes);
    else
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    meeting->done[rank] = now();
    meet(0);
    for (int i = 0; i < ranks; i++)
        last = meeting->done[i] > last ? meeting->done[i] : last;
    return last - begin;
}

/* Alternate, so that a disturbance affects both ways. */
static void measure(int bytes, int repeats)
{
    double seconds[WAYS][MOST_REPEATS];
    for (int repeat = -WARM; repeat < repeats; repeat++)
        for (int way = 0; way < WAYS; way++) {
            double took = once(way, bytes);
            if (repeat >= 0)
                seconds[way][repeat] = took;
        }
    for (int way = 0; way < WAYS && rank == 0; way++) {
        printf("%d %s", bytes, way == 0 ? "chain" : "broadcast");
        for (int repeat = 0; repeat < repeats; repeat++)
            printf(" %.6f", seconds[way][repeat]);
        puts("");
        fflush(stdout);
    }
}

int main(int count, char **words)
{
    enum { FILE_NAME = 1, REPEATS, BYTES, LARGEST = 4 << 20 };
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, open(words[FILE_NAME], O_RDWR), 0);
    if (meeting == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 2);
    data = calloc(1, LARGEST);
    for (int word = BYTES; word < count; word++)
        measure(atoi(words[word]), atoi(words[REPEATS]));
    MPI_Finalize();
    return 0;
}
