#include "levels.h"

#include <limits.h>

/* Bytes up to which calls go in two levels; 0 for never. The latency between sites and the MPI's own algorithms are
 * not known here, so two levels are taken where they gain in most of the simulated settings, and where the most they
 * lose in one is less than the most they gain (benches/mpi/collectives.py;
 * docs/explanation/mpi-collectives.md has its table). */
static const size_t LARGEST[TWO_LEVEL_CALLS] = {
    [BARRIER] = SIZE_MAX, [BCAST] = SIZE_MAX,   [REDUCE] = SIZE_MAX, [ALLREDUCE] = 65536,
    [GATHER] = 65536,     [GATHERV] = 0,        [SCATTER] = 256,     [SCATTERV] = 0,
    [ALLGATHER] = 65536,  [ALLGATHERV] = 65536, [ALLTOALL] = 256,
};

/* What a representative holds of the others; MPI's own counts are ints. */
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
    return two_level_settings.mode == ALWAYS || (levels->size > levels->sites && bytes <= LARGEST[call]);
}
