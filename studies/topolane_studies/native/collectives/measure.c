/* Times collectives on a simulated platform: as the simulator's MPI does them, and in two levels.
 *
 *     measure CALL=BYTES,BYTES... ...      prints "call bytes flat two-level", in seconds
 *
 * Compiled with native/mpi/collectives and native/mpi/sites.c. The rest of that library is not here: communicators
 * are not freed and nothing is counted but what crosses between sites.
 */
#include "collectives/two_level.h"
#include "models/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Communicator world;
Communicator *communicator_world;

Communicator *communicator_found(MPI_Comm comm)
{
    if (!world.world) {
        int *ranks;
        PMPI_Comm_rank(comm, &world.rank);
        PMPI_Comm_size(comm, &world.size);
        ranks = malloc((size_t)world.size * sizeof *ranks);
        for (int rank = 0; rank < world.size; rank++)
            ranks[rank] = rank;
        world.world = ranks;
    }
    return &world;
}

void count_sent(int rank, Kind kind, uint64_t messages, uint64_t bytes)
{
    (void)rank, (void)kind, (void)messages, (void)bytes;
}

void count_received(int rank, Kind kind)
{
    (void)rank, (void)kind;
}

void model_barrier(const Model *model) { (void)model; }
void model_bcast(const Model *model, int root, uint64_t bytes) { (void)model, (void)root, (void)bytes; }
void model_reduce(const Model *model, int root, uint64_t bytes) { (void)model, (void)root, (void)bytes; }
void model_gather(const Model *model, int root, uint64_t bytes) { (void)model, (void)root, (void)bytes; }
void model_scatter(const Model *model, int root, uint64_t bytes) { (void)model, (void)root, (void)bytes; }
void model_alltoall(const Model *model, uint64_t bytes) { (void)model, (void)bytes; }
void model_gatherv(const Model *model, int root, uint64_t bytes, Part *part, const void *parts)
{
    (void)model, (void)root, (void)bytes, (void)part, (void)parts;
}

/* Buffers for a block to and from every rank. */
typedef struct {
    char *send, *receive;
    int bytes, *counts, *starts;
} Data;

typedef bool Way(const Data *data, bool two_levels);

#define COMM MPI_COMM_WORLD
#define EITHER(two, flat) int result; return two_levels ? (two) : (flat) == MPI_SUCCESS

static bool barrier(const Data *d, bool two_levels)
{
    (void)d;
    EITHER(two_level_barrier(COMM, &result), PMPI_Barrier(COMM));
}

static bool bcast(const Data *d, bool two_levels)
{
    EITHER(two_level_bcast(d->send, d->bytes, MPI_BYTE, 0, COMM, &result),
           PMPI_Bcast(d->send, d->bytes, MPI_BYTE, 0, COMM));
}

static bool reduce(const Data *d, bool two_levels)
{
    EITHER(two_level_reduce(d->send, d->receive, d->bytes / 8, MPI_DOUBLE, MPI_SUM, 0, COMM, &result),
           PMPI_Reduce(d->send, d->receive, d->bytes / 8, MPI_DOUBLE, MPI_SUM, 0, COMM));
}

static bool allreduce(const Data *d, bool two_levels)
{
    EITHER(two_level_allreduce(d->send, d->receive, d->bytes / 8, MPI_DOUBLE, MPI_SUM, COMM, &result),
           PMPI_Allreduce(d->send, d->receive, d->bytes / 8, MPI_DOUBLE, MPI_SUM, COMM));
}

#define PAIR(d) (d)->send, (d)->bytes, MPI_BYTE, (d)->receive, (d)->bytes, MPI_BYTE
#define VARYING(d) ((Blocks){(d)->counts, (d)->starts, NULL, NULL})

static bool gather(const Data *d, bool two_levels)
{
    EITHER(two_level_gather(PAIR(d), 0, COMM, &result), PMPI_Gather(PAIR(d), 0, COMM));
}

static bool gatherv(const Data *d, bool two_levels)
{
    EITHER(two_level_gatherv(d->send, d->bytes, MPI_BYTE, d->receive, VARYING(d), MPI_BYTE, 0, COMM, &result),
           PMPI_Gatherv(d->send, d->bytes, MPI_BYTE, d->receive, d->counts, d->starts, MPI_BYTE, 0, COMM));
}

static bool scatter(const Data *d, bool two_levels)
{
    EITHER(two_level_scatter(PAIR(d), 0, COMM, &result), PMPI_Scatter(PAIR(d), 0, COMM));
}

static bool scatterv(const Data *d, bool two_levels)
{
    EITHER(two_level_scatterv(d->send, VARYING(d), MPI_BYTE, d->receive, d->bytes, MPI_BYTE, 0, COMM, &result),
           PMPI_Scatterv(d->send, d->counts, d->starts, MPI_BYTE, d->receive, d->bytes, MPI_BYTE, 0, COMM));
}

static bool allgather(const Data *d, bool two_levels)
{
    EITHER(two_level_allgather(PAIR(d), COMM, &result), PMPI_Allgather(PAIR(d), COMM));
}

static bool allgatherv(const Data *d, bool two_levels)
{
    EITHER(two_level_allgatherv(d->send, d->bytes, MPI_BYTE, d->receive, VARYING(d), MPI_BYTE, COMM, &result),
           PMPI_Allgatherv(d->send, d->bytes, MPI_BYTE, d->receive, d->counts, d->starts, MPI_BYTE, COMM));
}

static bool alltoall(const Data *d, bool two_levels)
{
    EITHER(two_level_alltoall(PAIR(d), COMM, &result), PMPI_Alltoall(PAIR(d), COMM));
}

static const struct {
    const char *name;
    Way *way;
    bool blocks; /* of every rank, in a buffer */
} CALLED[] = {
    {"barrier", barrier, false},      {"bcast", bcast, false},         {"reduce", reduce, false},
    {"allreduce", allreduce, false},  {"gather", gather, true},        {"gatherv", gatherv, true},
    {"scatter", scatter, true},       {"scatterv", scatterv, true},    {"allgather", allgather, true},
    {"allgatherv", allgatherv, true}, {"alltoall", alltoall, true},
};

/* From when all begin, at one moment of the simulated clock, until the last has done. */
static double seconds(Way *way, const Data *data, bool two_levels)
{
    double now = PMPI_Wtime(), begin, end;
    PMPI_Allreduce(&now, &begin, 1, MPI_DOUBLE, MPI_MAX, COMM);
    begin += 10;
    usleep((useconds_t)((begin - PMPI_Wtime()) * 1e6));
    if (!way(data, two_levels))
        return -1;
    now = PMPI_Wtime();
    PMPI_Allreduce(&now, &end, 1, MPI_DOUBLE, MPI_MAX, COMM);
    return end - begin;
}

static void measure(int call, int bytes)
{
    int ranks = world.size, blocks = CALLED[call].blocks ? ranks : 1;
    Data data = {calloc((size_t)(blocks * bytes) + 8, 1), calloc((size_t)(blocks * bytes) + 8, 1), bytes,
                 malloc((size_t)ranks * sizeof(int)), malloc((size_t)ranks * sizeof(int))};
    for (int rank = 0; rank < ranks; rank++) {
        data.counts[rank] = bytes;
        data.starts[rank] = rank * bytes;
    }
    double flat = seconds(CALLED[call].way, &data, false), two = seconds(CALLED[call].way, &data, true);
    if (world.rank == 0)
        printf("%s %d %.9g %.9g\n", CALLED[call].name, bytes, flat, two);
    free(data.send);
    free(data.receive);
    free(data.counts);
    free(data.starts);
}

int main(int count, char **arguments)
{
    int result;
    MPI_Init(&count, &arguments);
    communicator_world = communicator_found(MPI_COMM_WORLD);
    two_level_start();
    two_level_barrier(COMM, &result); /* makes the private communicators */
    for (int i = 1; i < count; i++) {
        char *sizes = strchr(arguments[i], '=');
        for (size_t call = 0; sizes && call < sizeof CALLED / sizeof *CALLED; call++)
            if (!strncmp(arguments[i], CALLED[call].name, (size_t)(sizes - arguments[i])) &&
                !CALLED[call].name[sizes - arguments[i]])
                for (char *size = sizes + 1; *size; size += *size == ',')
                    measure((int)call, (int)strtol(size, &size, 10));
    }
    MPI_Finalize();
    return 0;
}
