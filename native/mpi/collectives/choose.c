#include "levels.h"

#include <limits.h>

/* Bytes up to which a call uses two levels at any latency between sites, and further bytes for each second
 * of latency: the loss of two levels inside sites grows with the bytes, the gain with the latency. Values
 * are those with a gain over a real delay of 20 ms with both MPIs and in most of the simulated settings
 * (benches/mpi/delayed.py, benches/mpi/collectives.py; docs/explanation/sites-collectives.md has the
 * tables). */
typedef struct {
    double bytes, for_latency;
} Limit;

static const double ANY = 1e300;
static const double MB = 1e6;

static Limit limit_of(TwoLevelCall call)
{
    switch (call) {
    case BARRIER:
        return (Limit){ANY, 0};
    case BCAST:
    case REDUCE:
        return (Limit){16384, 64 * MB};
    case ALLREDUCE:
        return (Limit){8192, 56 * MB};
    case GATHER:
        return (Limit){65536, 0};
    case ALLGATHER:
    case ALLGATHERV:
        return (Limit){65536, 56 * MB};
    case SCATTER:
    case ALLTOALL:
        return (Limit){256, 0};
    default: /* only the root knows the bytes */
        return (Limit){-1, 0};
    }
}

/* Whether a representative can hold the data of the others: MPI's own counts are ints. */
static bool holdable(TwoLevelCall call, const Levels *levels, size_t bytes)
{
    size_t ranks = (size_t)levels->size, blocks;
    switch (call) {
    case ALLTOALL:
        blocks = ranks * ranks;
        break;
    case GATHER:
    case SCATTER:
    case ALLGATHER:
        blocks = ranks;
        break;
    default:
        blocks = 1;
    }
    return bytes <= INT_MAX / blocks;
}

bool two_levels_pay(TwoLevelCall call, const Levels *levels, size_t bytes)
{
    if (!holdable(call, levels, bytes))
        return false;
    Limit limit = limit_of(call);
    return two_level_settings.mode == ALWAYS ||
           (levels->size > levels->sites && (double)bytes <= limit.bytes + limit.for_latency * levels->latency);
}
