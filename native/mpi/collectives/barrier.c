#include "exchange.h"
#include "stages.h"

/* First all ranks of each site arrive, then all sites, and then the ranks of each site are released. */
static int barrier(Levels *levels)
{
    char there = 0;
    int own = representative_of(levels, levels->site, NO_ROOT), code = stage_barrier(levels);
    if (levels->rank == own && code == MPI_SUCCESS) {
        Exchange exchange;
        exchange_begin(&exchange, levels, 2 * levels->sites);
        for (int site = 0; site < levels->sites; site++)
            if (site != levels->site)
                exchange_receive(&exchange, representative_of(levels, site, NO_ROOT), NULL, 0, MPI_BYTE);
        for (int site = 0; site < levels->sites; site++)
            if (site != levels->site)
                exchange_send(&exchange, representative_of(levels, site, NO_ROOT), NULL, 0, MPI_BYTE);
        code = exchange_end(&exchange);
    }
    int inside = stage_bcast(levels, &there, 1, MPI_BYTE, levels->place[own]);
    return code != MPI_SUCCESS ? code : inside;
}

bool two_level_barrier(MPI_Comm comm, int *result)
{
    Levels *levels = levels_for(BARRIER, comm, NO_ROOT, 0);
    if (levels)
        *result = two_level_result(comm, barrier(levels));
    return levels;
}
