/* Facts about a communicator are kept in an attribute, which is made when the communicator is first used. */
#include "communicator.h"

#include <pthread.h>
#include <stdlib.h>

#include "counts.h"

static Communicator of_world;
Communicator *communicator_world;
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Group world_group;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* Counts freed communicators: after a free, a handle may stand for another communicator, so threads must
 * not use what they remember. */
static _Atomic uint32_t freed;
static _Thread_local struct {
    Communicator *communicator;
    MPI_Comm comm;
    uint32_t freed;
} last __attribute__((tls_model("initial-exec")));

static int on_free(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    Communicator *gone = value;
    atomic_fetch_add(&freed, 1);
    /* Free the levels now, while all ranks free theirs: their communicators are freed collectively, and
     * holders may exist for long. */
    struct Levels *levels = atomic_exchange(&gone->levels, NULL);
    if (levels)
        levels_free(levels);
    communicator_release(gone);
    return MPI_SUCCESS;
}

int *world_ranks(MPI_Group group, int size)
{
    int *ranks = calloc(2 * (size_t)size + 1, sizeof *ranks);
    if (ranks) {
        int *world = ranks + size;
        for (int rank = 0; rank < size; rank++)
            ranks[rank] = rank;
        if (PMPI_Group_translate_ranks(group, size, ranks, world_group, world) != MPI_SUCCESS) {
            free(ranks);
            ranks = NULL;
        }
        for (int rank = 0; ranks && rank < size; rank++)
            ranks[rank] = world[rank] == MPI_UNDEFINED ? -1 : world[rank];
    }
    PMPI_Group_free(&group);
    return ranks;
}

static bool fill(Communicator *made, MPI_Comm comm)
{
    int inter = 0;
    MPI_Group group;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_rank(comm, &made->rank);
    PMPI_Comm_size(comm, &made->size);
    if (inter)
        PMPI_Comm_remote_group(comm, &group);
    else
        PMPI_Comm_group(comm, &group);
    PMPI_Group_size(group, &made->peers);
    made->inter = inter != 0;
    made->world = world_ranks(group, made->peers);
    atomic_init(&made->holders, 1);
    return made->world != NULL;
}

static Communicator *make(MPI_Comm comm)
{
    Communicator *made = NULL;
    int found = 0;
    pthread_mutex_lock(&making);
    if (PMPI_Comm_get_attr(comm, keyval, &made, &found) != MPI_SUCCESS || found)
        goto out;
    made = calloc(1, sizeof *made);
    if (made && (!fill(made, comm) || PMPI_Comm_set_attr(comm, keyval, made) != MPI_SUCCESS)) {
        free((void *)made->world);
        free(made);
        made = NULL;
    }
out:
    pthread_mutex_unlock(&making);
    return made;
}

bool communicator_open(void)
{
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &keyval, NULL) != MPI_SUCCESS)
        return false;
    if (fill(&of_world, MPI_COMM_WORLD))
        communicator_world = &of_world;
    return communicator_world != NULL;
}

Communicator *communicator_found(MPI_Comm comm)
{
    uint32_t now = atomic_load_explicit(&freed, memory_order_relaxed);
    if (last.comm == comm && last.communicator && last.freed == now)
        return last.communicator;
    Communicator *found = NULL;
    int known = 0;
    if (comm == MPI_COMM_NULL || keyval == MPI_KEYVAL_INVALID ||
        PMPI_Comm_get_attr(comm, keyval, &found, &known) != MPI_SUCCESS)
        return NULL;
    if (!known && !(found = make(comm)))
        return NULL;
    last.comm = comm;
    last.communicator = found;
    last.freed = now;
    return found;
}

void communicator_hold(Communicator *communicator)
{
    atomic_fetch_add(&communicator->holders, 1);
}

void communicator_release(Communicator *communicator)
{
    if (atomic_fetch_sub(&communicator->holders, 1) != 1)
        return;
    free((void *)communicator->world);
    free(communicator);
}

