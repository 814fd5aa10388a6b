/* Inside of the preloaded library: what its files offer each other.
 *
 *     calls/        the MPI functions that are wrapped: count, then call PMPI (or a two-level collective)
 *     communicator  ranks of a communicator as ranks of MPI_COMM_WORLD, kept as an attribute of it
 *     counts        the counters of this process
 *     report        a thread that sends them to a receiver and takes site maps (docs/reference/mpi-protocol.md)
 *     sites         the newest site maps
 *     collectives/  two-level collectives, and the agreement of all ranks on a site map
 *
 * The thread of `report` never calls MPI. Nothing here may make a program fail: where something cannot be
 * had, the call goes to PMPI as if the library were not there.
 */
#ifndef TOPOLANE_MPI_H
#define TOPOLANE_MPI_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an entry of the matrix came to be known; numbers of the protocol. */
typedef enum {
    POINT_TO_POINT = 0, COLLECTIVE_MODELLED = 1, COLLECTIVE_COUNTED = 2, ONE_SIDED = 3,
    FETCHED = 4,             /* one-sided from the peer to this rank: the peer cannot know of it */
    KINDS = 5
} Kind;

/* What is known of a communicator. Ranks are those of the communicator unless they are called world ranks. */
typedef struct Communicator {
    int rank, size;
    const int *world;        /* world rank of every rank (of the remote group in an intercommunicator); negative:
                                outside MPI_COMM_WORLD */
    int peers;               /* length of `world` */
    bool inter;
    _Atomic int holders;     /* its communicator, and receives from any source that outlive it */
    _Atomic(struct Levels *) levels;   /* of collectives/levels.c; NULL until first wanted */
} Communicator;

/* Frees what collectives/levels.c keeps, when the communicator is freed. */
void levels_free(struct Levels *levels);

/* Of MPI_COMM_WORLD; NULL before MPI is initialised. */
extern Communicator *communicator_world;
/* Of any other. */
Communicator *communicator_found(MPI_Comm comm);

/* Never NULL for a valid communicator once MPI is initialised; NULL otherwise. Any thread. */
static inline Communicator *communicator_of(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD ? communicator_world : communicator_found(comm);
}

/* Counts what this process sent to, or received from, a world rank; a negative rank (a process outside
 * MPI_COMM_WORLD) is passed over. A message received after one was sent is a turn, of the kind of the one received.
 * Any thread, no lock. */
void count_sent(int world_rank, Kind kind, uint64_t messages, uint64_t bytes);
void count_received(int world_rank, Kind kind);
/* A message from a world rank that it was asked for by this one: a turn by itself. */
void count_fetched(int world_rank, uint64_t bytes);

/* A site of every world rank. Immutable once published. */
typedef struct {
    uint64_t epoch;          /* from 1; 0: no map is known */
    int ranks, sites;
    const uint16_t *site;
} SiteMap;

/* Keeps a map (copies it). Of the thread of `report`, or at start from TOPOLANE_MPI_SITES. */
void sites_publish(const SiteMap *map);
/* Epoch of the newest map, 0 without one. */
uint64_t sites_newest(void);
/* A copy of the map of an epoch, to be freed; NULL if it is no longer kept: the last 64 are. */
SiteMap *sites_at(uint64_t epoch);

/* Two-level collectives. Each answers whether it did the work; `*result` is then MPI's return code. It answers
 * the same on all ranks of the communicator. One function per call, declared in collectives/two_level.h. */

#endif
