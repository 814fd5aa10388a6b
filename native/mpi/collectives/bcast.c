#include "buffers.h"
#include "exchange.h"
#include "stages.h"

/* The root sends to the representatives of all other sites at once: one way across the WAN, sites - 1 messages. */
static int bcast(Levels *levels, void *buffer, int count, MPI_Datatype type, int root)
{
    int own = representative_of(levels, levels->site, root), code = MPI_SUCCESS;
    Exchange exchange;
    exchange_begin(&exchange, levels, levels->sites);
    if (levels->rank == root)
        for (int site = 0; site < levels->sites; site++) {
            if (site != levels->site)
                exchange_send(&exchange, representative_of(levels, site, root), buffer, count, type);
        }
    else if (levels->rank == own) {
        exchange_receive(&exchange, root, buffer, count, type);
        code = exchange_end(&exchange);
    }
    int inside = stage_bcast(levels, buffer, count, type, levels->place[own]);
    if (levels->rank != own || levels->rank == root)
        code = exchange_end(&exchange);
    return code != MPI_SUCCESS ? code : inside;
}

bool two_level_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, int *result)
{
    size_t bytes;
    Levels *levels = data_bytes(count, type, &bytes) ? levels_for(BCAST, comm, root, bytes) : NULL;
    if (levels)
        *result = two_level_result(comm, bcast(levels, buffer, (int)count, type, root));
    return levels;
}
