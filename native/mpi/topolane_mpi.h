/* Inside of the preloaded library: what its files offer each other.
 *
 *     calls/        the MPI functions that are wrapped: count, then call PMPI (or a two-level collective)
 *     communicator  ranks of a communicator as ranks of MPI_COMM_WORLD, kept as an attribute of it
 *     counts        the counters of this process
 *     report        a thread that sends them to a receiver and takes site maps (native/mpi/PROTOCOL.md)
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

/* How an entry of the matrix was found, with the numbers of the protocol. */
typedef enum {
    POINT_TO_POINT = 0, COLLECTIVE_MODELLED = 1, COLLECTIVE_COUNTED = 2, ONE_SIDED = 3,
    FETCHED = 4,             /* one-sided data from the peer to this rank, which the peer cannot know of */
    KINDS = 5
} Kind;

/* Facts about a communicator. Ranks are those of the communicator unless they are called world ranks. */
typedef struct Communicator {
    int rank, size;
    const int *world;        /* world rank of every rank (of the remote group in an intercommunicator); negative:
                                outside MPI_COMM_WORLD */
    int peers;               /* length of `world` */
    bool inter;
    _Atomic int holders;     /* number of references: its communicator, and receives from any source that outlive it */
    _Atomic(struct Levels *) levels;   /* owned by collectives/levels.c; NULL until first needed */
} Communicator;

/* Frees the levels of a freed communicator. Defined in collectives/levels.c. */
void levels_free(struct Levels *levels);

/* MPI_COMM_WORLD; NULL before MPI is initialised. */
extern Communicator *communicator_world;
/* Any other communicator. */
Communicator *communicator_found(MPI_Comm comm);

/* The facts about a communicator. Never NULL for a valid one once MPI is initialised; NULL otherwise.
 * Callable from any thread. */
static inline Communicator *communicator_of(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD ? communicator_world : communicator_found(comm);
}

/* Count what this process sent to, or received from, a world rank. A negative rank (a process outside
 * MPI_COMM_WORLD) is ignored. A message received after one was sent is a turn, of the kind of the received
 * one. Callable from any thread, without a lock. */
void count_sent(int world_rank, Kind kind, uint64_t messages, uint64_t bytes);
void count_received(int world_rank, Kind kind);
/* Counts a message that this rank requested from a world rank, which is a turn by itself. */
void count_fetched(int world_rank, uint64_t bytes);

/* The site of every world rank. Immutable once published. */
typedef struct {
    uint64_t epoch;          /* from 1; 0 if no map is known */
    int ranks, sites;
    const uint16_t *site;
} SiteMap;

/* Stores a copy of a map. Called by the thread of `report`, or at start for TOPOLANE_MPI_SITES. */
void sites_publish(const SiteMap *map);
/* The epoch of the newest map; 0 without one. */
uint64_t sites_newest(void);
/* A copy of the map of an epoch, which the caller frees; NULL if it is no longer stored. The last 64 are
 * stored. */
SiteMap *sites_at(uint64_t epoch);

/* Two-level collectives: one function per call, declared in collectives/two_level.h. Each returns whether
 * it did the work, the same on all ranks of the communicator; `*result` is then MPI's return code. */

#endif
