/* Internals of the two-level collectives: the ranks by site, and the communicators of the stages. */
#ifndef TOPOLANE_MPI_LEVELS_H
#define TOPOLANE_MPI_LEVELS_H

#include "two_level.h"

#include <limits.h>

typedef enum {
    BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL,
    TWO_LEVEL_CALLS
} TwoLevelCall;

typedef enum { NEVER, ALWAYS, AUTO } Mode;

/* The settings from rank 0's environment, the same on all ranks. */
typedef struct {
    Mode mode;
    bool changing; /* whether a manager may send maps */
} Settings;

extern Settings two_level_settings; /* defined in start.c */

/* The ranks of a communicator by site. Sites are numbered by their first rank, so all ranks number them
 * alike. */
typedef struct Levels {
    int rank, size;
    const int *world;
    int sites, site, members; /* number of sites, this rank's site, and its number of ranks; no sites: no map is agreed on */
    int *site_of, *place;     /* for each rank: its site, and its index among the ranks of the site */
    int *ranks, *first;       /* all ranks ordered by site, and the index at which each site begins; sites + 1 of these */
    bool in_order;            /* all ranks of a site come before those of the next one */
    MPI_Comm whole, inside;   /* private communicators: of all ranks, and of this site's ranks */
    double latency;           /* least one-way latency between two sites in seconds; the same on all ranks */
    Communicator own;         /* describes `inside` for the models */

    uint64_t epoch;           /* epoch of the map in use */
    int64_t hash;
    int64_t until, interval;  /* calls until the next agreement, and between two agreements */
    double agreed, cost;      /* time of the last agreement and its duration, in seconds */
    bool counted;             /* counts among the communicators with private ones */
    int tag;                  /* tag of the running call's messages, so that messages left by a failed call are not taken
                               * for them */
    bool abandoned;           /* an error left messages of the running call under way, so their memory must stay */
    bool foreign;             /* has processes of another MPI_COMM_WORLD, which no map covers */
} Levels;

enum { NO_ROOT = INT_MIN }; /* not -1, because a wrong root may well be -1 */

/* Whether only the root knows the bytes. Such calls do not depend on the size. */
static inline bool sized_by_root(TwoLevelCall call)
{
    return call == GATHERV || call == SCATTERV;
}

/* The levels to use in a call, or NULL if it must stay flat; the same on all ranks. Each rank calls this
 * once per call. `bytes` is what one rank contributes or gets; `root` is NO_ROOT if there is none. */
Levels *levels_for(TwoLevelCall call, MPI_Comm comm, int root, size_t bytes);

/* Whether two levels are faster than one (choose.c). */
bool two_levels_pay(TwoLevelCall call, const Levels *levels, size_t bytes);

/* Sorts ranks by site. Returns false without memory. (sort.c) */
bool levels_sort(Levels *levels, const SiteMap *map);

/* Passes an error of a private communicator to the error handler of the program's communicator. */
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
