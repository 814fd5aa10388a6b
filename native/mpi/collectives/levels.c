#include "levels.h"

#include <stdlib.h>

/* MPICH has 2,048 context ids per process, and a communicator takes two here. */
enum { MOST_COMMUNICATORS = 100, MOST_CALLS = 256, FIRST_CALLS = 4, ROUND = 3 };

/* Every MPI supports the last tag. Tags below the first are used for other messages. */
enum { FIRST_TAG = 3, LAST_TAG = 32767 };

/* Seconds between agreements. If an agreement takes long, COSTS times its duration. */
static const double BETWEEN = 1, COSTS = 200;

static _Atomic int communicators;

static bool least(const int64_t mine[ROUND], int64_t all[ROUND], MPI_Comm comm)
{
    return PMPI_Allreduce(mine, all, ROUND, MPI_INT64_T, MPI_MIN, comm) == MPI_SUCCESS;
}

static void leave_private(Levels *levels)
{
    if (levels->inside != MPI_COMM_NULL)
        PMPI_Comm_free(&levels->inside);
    if (levels->whole != MPI_COMM_NULL)
        PMPI_Comm_free(&levels->whole);
    if (levels->counted)
        communicators--;
    levels->counted = false;
}

/* Makes a communicator of the same ranks without the program's attributes and hints. */
static bool make_whole(Levels *levels, MPI_Comm comm)
{
    MPI_Group group;
    MPI_Errhandler handler;
    if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS)
        return false;
    PMPI_Comm_get_errhandler(comm, &handler); /* running out of context ids must not call the program's error handler */
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    bool made = PMPI_Comm_create(comm, group, &levels->whole) == MPI_SUCCESS;
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler);
    PMPI_Group_free(&group);
    if (!made)
        levels->whole = MPI_COMM_NULL;
    else
        PMPI_Comm_set_errhandler(levels->whole, MPI_ERRORS_RETURN);
    return made;
}

static bool make_private(Levels *levels, MPI_Comm comm)
{
    if (levels->whole == MPI_COMM_NULL && !make_whole(levels, comm))
        return false;
    if (levels->inside != MPI_COMM_NULL)
        PMPI_Comm_free(&levels->inside);
    if (PMPI_Comm_split(levels->whole, levels->site, levels->rank, &levels->inside) != MPI_SUCCESS) {
        levels->inside = MPI_COMM_NULL;
        return false;
    }
    PMPI_Comm_set_errhandler(levels->inside, MPI_ERRORS_RETURN);
    return true;
}

/* The one-way latency between two representatives in nanoseconds: the mean of two exchanges, since either
 * may begin first. An exchange before them opens the connection. */
static int64_t latency_to(const Levels *levels, int other)
{
    double began = 0;
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            began = PMPI_Wtime();
        if (PMPI_Sendrecv(NULL, 0, MPI_BYTE, other, 0, NULL, 0, MPI_BYTE, other, 0, levels->whole,
                          MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return INT64_MAX;
    }
    return (int64_t)((PMPI_Wtime() - began) * 1e9 / 2);
}

/* The least latency between the first site and any other, at their representatives; INT64_MAX on other
 * ranks. */
static int64_t latency_of(const Levels *levels)
{
    int first = representative_of(levels, 0, NO_ROOT);
    int64_t least = INT64_MAX;
    if (levels->rank != representative_of(levels, levels->site, NO_ROOT))
        return least;
    if (levels->rank != first)
        return latency_to(levels, first);
    for (int site = 1; site < levels->sites; site++) {
        int64_t latency = latency_to(levels, representative_of(levels, site, NO_ROOT));
        least = latency < least ? latency : least;
    }
    return least;
}

/* A positive FNV-1a hash of the sites of this communicator's ranks. */
static int64_t hash_of(const Levels *levels, const SiteMap *map)
{
    uint64_t hash = 14695981039346656037u;
    for (int rank = 0; rank < levels->size; rank++)
        hash = (hash ^ map->site[levels->world[rank]]) * 1099511628211u;
    return (int64_t)(hash >> 2) + 1;
}

static bool fits(const Levels *levels, const SiteMap *map)
{
    for (int rank = 0; map && rank < levels->size; rank++)
        if (levels->world[rank] >= map->ranks)
            return false;
    return map;
}

/* Adopts the map of an epoch that all ranks know. It must still be the same map on all ranks, and all must
 * have the memory for it. Otherwise the communicator stays flat until an agreement finds a usable map. */
static bool adopt(Levels *levels, uint64_t epoch, MPI_Comm comm)
{
    SiteMap *map = sites_at(epoch);
    bool fit = fits(levels, map);
    int64_t hash = fit ? hash_of(levels, map) : 0, all[ROUND];
    bool same = levels->sites && levels->hash == hash;
    bool may = fit && (levels->counted || communicators < MOST_COMMUNICATORS);
    if (may && !same)
        may = levels_sort(levels, map);
    free(map);
    if (!least((int64_t[ROUND]){may, hash, -hash}, all, comm) || !all[0] || all[1] != -all[2])
        return false;
    levels->epoch = epoch;
    if (same)
        return true;
    levels->hash = hash;
    if (levels->sites == 1)
        return true;
    communicators += !levels->counted;
    levels->counted = true;
    bool made = make_private(levels, comm);
    if (!least((int64_t[ROUND]){made}, all, comm) || !all[0])
        return false;
    if (!least((int64_t[ROUND]){latency_of(levels)}, all, comm))
        return false;
    levels->latency = 1e-9 * (double)all[0];
    return true;
}

/* Schedules the next agreement after the number of calls that should take the wanted time. All ranks
 * compute it from the same numbers. */
static void set_interval(Levels *levels, double elapsed, double cost)
{
    double between = COSTS * cost > BETWEEN ? COSTS * cost : BETWEEN;
    double calls = elapsed > 0 ? (double)levels->interval * between / elapsed : 2.0 * (double)levels->interval;
    int64_t most = 2 * levels->interval < MOST_CALLS ? 2 * levels->interval : MOST_CALLS;
    levels->interval = calls < 1 ? 1 : calls > (double)most ? most : (int64_t)calls;
}

/* Agrees on a map: the oldest among the newest maps of the ranks, because all ranks know it or knew it.
 * The elapsed time is the longest of any rank; the cost is that of the rank which came last and waited for
 * no other. */
static void agree(Levels *levels, MPI_Comm comm)
{
    double now = PMPI_Wtime();
    int64_t all[ROUND], mine[ROUND] = {(int64_t)sites_newest(), (int64_t)((levels->agreed - now) * 1e9),
                                       (int64_t)(levels->cost * 1e9)};
    bool agreed = least(mine, all, comm);
    if (agreed && (uint64_t)all[0] != levels->epoch && !adopt(levels, (uint64_t)all[0], comm)) {
        levels->epoch = 0;
        levels->sites = 0;
    }
    if (agreed)
        set_interval(levels, -(double)all[1] * 1e-9, (double)all[2] * 1e-9);
    levels->until = two_level_settings.changing ? levels->interval : INT64_MAX;
    levels->agreed = now;
    levels->cost = PMPI_Wtime() - now;
}

static Levels *new_levels(const Communicator *communicator)
{
    Levels *levels = calloc(1, sizeof *levels);
    if (!levels)
        return NULL;
    levels->rank = communicator->rank;
    levels->size = communicator->size;
    levels->world = communicator->world;
    levels->whole = levels->inside = MPI_COMM_NULL;
    levels->interval = two_level_settings.mode == ALWAYS ? 1 : FIRST_CALLS;
    levels->until = levels->interval;
    levels->agreed = PMPI_Wtime();
    levels->tag = FIRST_TAG;
    for (int rank = 0; rank < levels->size && !levels->foreign; rank++)
        levels->foreign = levels->world[rank] < 0;
    return levels;
}

Levels *levels_for(TwoLevelCall call, MPI_Comm comm, int root, size_t bytes)
{
    if (two_level_settings.mode == NEVER || comm == MPI_COMM_NULL)
        return NULL;
    Communicator *communicator = communicator_of(comm);
    if (!communicator || communicator->inter || communicator->size < 2)
        return NULL;
    if (root != NO_ROOT && (root < 0 || root >= communicator->size))
        return NULL;
    if (!bytes && call != BARRIER && !sized_by_root(call))
        return NULL;
    Levels *levels = communicator->levels;
    if (!levels)
        communicator->levels = levels = new_levels(communicator);
    if (!levels || levels->foreign)
        return NULL;
    if (--levels->until <= 0)
        agree(levels, comm);
    if (levels->sites < 2 || !two_levels_pay(call, levels, bytes))
        return NULL;
    levels->tag = levels->tag < LAST_TAG ? levels->tag + 1 : FIRST_TAG;
    levels->abandoned = false;
    return levels;
}

void levels_free(Levels *levels)
{
    if (!levels)
        return;
    leave_private(levels);
    free(levels->site_of);
    free(levels);
}

int two_level_result(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, code);
    return code;
}
