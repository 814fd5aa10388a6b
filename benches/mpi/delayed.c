/* Times collectives of an MPI program whose ranks are on one machine: flat, and as the preloaded library does them.
 *
 *     delayed FILE REPEATS PAUSE CALL=BYTES,BYTES... ...     prints "CALL BYTES WAY SECONDS..."
 *
 * FILE is shared memory. All ranks begin a call at the same moment of the machine's clock, and a repeat lasts until the
 * last rank has finished. They meet in the shared memory, PAUSE seconds after the call before.
 */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 256, WARM = 6 };

typedef struct {
    _Atomic int here;
    _Atomic int rounds;
    double begin;
    double done[MOST_RANKS];
} Meeting;

static Meeting *meeting;
static int rank, ranks;
static char *given, *taken;

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
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        sleep_until(now() + 2e-4);
    }
    return meeting->begin;
}

static void call(const char *name, int bytes, bool flat)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int reals = bytes / 8;
    if (!strcmp(name, "barrier"))
        flat ? PMPI_Barrier(comm) : MPI_Barrier(comm);
    else if (!strcmp(name, "bcast"))
        flat ? PMPI_Bcast(given, bytes, MPI_BYTE, 0, comm) : MPI_Bcast(given, bytes, MPI_BYTE, 0, comm);
    else if (!strcmp(name, "reduce"))
        flat ? PMPI_Reduce(given, taken, reals, MPI_DOUBLE, MPI_SUM, 0, comm)
             : MPI_Reduce(given, taken, reals, MPI_DOUBLE, MPI_SUM, 0, comm);
    else if (!strcmp(name, "allreduce"))
        flat ? PMPI_Allreduce(given, taken, reals, MPI_DOUBLE, MPI_SUM, comm)
             : MPI_Allreduce(given, taken, reals, MPI_DOUBLE, MPI_SUM, comm);
    else
        flat ? PMPI_Allgather(given, bytes, MPI_BYTE, taken, bytes, MPI_BYTE, comm)
             : MPI_Allgather(given, bytes, MPI_BYTE, taken, bytes, MPI_BYTE, comm);
}

/* On rank 0: the seconds until the last rank has finished. */
static double once(const char *name, int bytes, bool flat, double pause)
{
    double begin = meet(pause), last = 0;
    sleep_until(begin);
    call(name, bytes, flat);
    meeting->done[rank] = now();
    meet(0);
    for (int i = 0; i < ranks; i++)
        last = meeting->done[i] > last ? meeting->done[i] : last;
    return last - begin;
}

/* Alternate, so that a disturbance affects both ways. The ranks agree on a site map in the first calls. */
static void measure(const char *name, int bytes, int repeats, double pause)
{
    double seconds[2][256];
    for (int repeat = -WARM; repeat < repeats; repeat++)
        for (int flat = 0; flat < 2; flat++) {
            double took = once(name, bytes, flat, pause);
            if (repeat >= 0)
                seconds[flat][repeat] = took;
        }
    for (int flat = 0; flat < 2 && rank == 0; flat++) {
        printf("%s %d %s", name, bytes, flat ? "flat" : "library");
        for (int repeat = 0; repeat < repeats; repeat++)
            printf(" %.6f", seconds[flat][repeat]);
        puts("");
        fflush(stdout);
    }
}

int main(int count, char **words)
{
    enum { FILE_NAME = 1, REPEATS, PAUSE, CALLS, LARGEST = 1 << 20 };
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int file = open(words[FILE_NAME], O_RDWR);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (meeting == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 2);
    given = calloc(1, LARGEST);
    taken = calloc((size_t)ranks, LARGEST);
    /* A higher priority keeps other work of the machine from disturbing the times. It does not stop that work, because
     * waiting ranks sleep. */
    sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1});
    for (int word = CALLS; word < count; word++) {
        char *sizes = strchr(words[word], '='), *next = NULL;
        *sizes++ = '\0';
        for (char *size = strtok_r(sizes, ",", &next); size; size = strtok_r(NULL, ",", &next))
            measure(words[word], atoi(size), atoi(words[REPEATS]), atof(words[PAUSE]));
    }
    MPI_Finalize();
    return 0;
}
