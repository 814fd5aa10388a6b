/* Inside of the two-level collectives: who is where, and what the stages are made of. */
#ifndef TOPOLANE_MPI_LEVELS_H
#define TOPOLANE_MPI_LEVELS_H

#include "two_level.h"

#include <limits.h>

typedef enum {
    BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL,
    TWO_LEVEL_CALLS
} TwoLevelCall;

typedef enum { NEVER, ALWAYS, AUTO } Mode;

/* What rank 0 of MPI_COMM_WORLD found in its environment, on all ranks. */
typedef struct {
    Mode mode;
    bool changing; /* a manager may send maps */
} Settings;

extern Settings two_level_settings; /* of start.c */

/* The ranks of a communicator by site. Sites are numbered by their first rank, so all ranks number them alike. */
typedef struct Levels {
    int rank, size;
    const int *world;
    int sites, site, members; /* of them, that of this rank, and its ranks; no sites: no map is agreed on */
    int *site_of, *place;     /* of every rank: its site, its place among the ranks of the site */
    int *ranks, *first;       /* all ranks by site, and where each site begins there; sites + 1 of these */
    bool in_order;            /* all ranks of a site come before those of the next */
    MPI_Comm whole, inside;   /* private: all ranks, those of this site */
    double latency;           /* the least between two sites, one way, in seconds; all ranks have the same */
    Communicator own;         /* of `inside`, as the models want it */

    uint64_t epoch;           /* of the map in use */
    int64_t hash;
    int64_t until, interval;  /* calls to the next agreement, and between two */
    double agreed, cost;      /* when that was, and what it took, in seconds */
    bool counted;             /* among the communicators that have private ones */
    int tag;                  /* of the running call's messages: what an error left of another call is not taken for them */
    bool abandoned;           /* an error left messages of the running call under way: their memory must stay */
    bool foreign;             /* has processes of another MPI_COMM_WORLD, of which no map speaks */
} Levels;

enum { NO_ROOT = INT_MIN }; /* a wrong root may well be -1 */

/* Only the root knows how much; such calls do not go by size. */
static inline bool sized_by_root(TwoLevelCall call)
{
    return call == GATHERV || call == SCATTERV;
}

/* The levels to use in a call, or NULL if it is to stay flat: the same on all ranks. Every rank asks once a call.
 * `bytes` is what one rank contributes or gets; `root` NO_ROOT where there is none. */
Levels *levels_for(TwoLevelCall call, MPI_Comm comm, int root, size_t bytes);

/* Whether two levels are better than one (choose.c). */
bool two_levels_pay(TwoLevelCall call, const Levels *levels, size_t bytes);

/* Sorts ranks by site. False without memory. (sort.c) */
bool levels_sort(Levels *levels, const SiteMap *map);

/* A communicator's own error handler hears of an error of a private one. */
int two_level_result(MPI_Comm comm, int code);

static inline int representative_of(const Levels *levels, int site, int root)
{
    return root >= 0 && levels->site_of[root] == site ? root : levels->ranks[levels->first[site]];
}

static inline int members_of(const Levels *levels, int site)
{
    return levels->first[site + 1] - levels->first[site];
}

#endif
