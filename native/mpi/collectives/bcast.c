#include "segments.h"
#include "stages.h"

#include <stdlib.h>

/* The root sends to the representatives of all other sites at once: one latency of the WAN and sites - 1
 * messages. `ours`: the buffer belongs to the library. */
static int bcast(Levels *levels, void *buffer, bool ours, int count, MPI_Datatype type, int root)
{
    int own = representative_of(levels, levels->site, root), message = 0, inside;
    Exchange exchange;
    exchange_begin(&exchange, levels, levels->sites);
    exchange.ours = ours;
    if (levels->rank == own && own != root)
        post_segments(&exchange, root, false, buffer, count, type);
    for (int site = 0; site < levels->sites && levels->rank == root; site++)
        if (site != levels->site)
            post_segments(&exchange, representative_of(levels, site, root), true, buffer, count, type);
    if (own == root)
        inside = stage_bcast(levels, buffer, count, type, levels->place[own]);
    else
        inside = spread_segments(&exchange, &message, buffer, count, type, levels->place[own]);
    int crossed = exchange_end(&exchange);
    return crossed != MPI_SUCCESS ? crossed : inside;
}

/* Broadcasts the data as bytes, which all ranks divide alike: their types may differ if the data are the
 * same. */
static int bcast_bytes(Levels *levels, void *buffer, int count, MPI_Datatype type, int bytes, int root)
{
    bool plain = is_plain(type);
    void *data = plain ? buffer : malloc((size_t)bytes);
    int code = MPI_SUCCESS;
    if (!data)
        return MPI_ERR_NO_MEM;
    if (!plain && levels->rank == root)
        code = pack_bytes(buffer, count, type, data, levels->whole);
    int done = bcast(levels, data, !plain, bytes, MPI_BYTE, root);
    if (!plain && levels->rank != root && done == MPI_SUCCESS)
        done = unpack_bytes(data, buffer, count, type, levels->whole);
    if (!plain)
        release(levels, data);
    return code != MPI_SUCCESS ? code : done;
}

bool two_level_bcast(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, int *result)
{
    size_t bytes;
    Levels *levels = data_bytes(count, type, &bytes) ? levels_for(BCAST, comm, root, bytes) : NULL;
    if (levels)
        *result = two_level_result(comm, bytes <= MOST_IN_PIECES
                                             ? bcast_bytes(levels, buffer, (int)count, type, (int)bytes, root)
                                             : bcast(levels, buffer, false, (int)count, type, root));
    return levels;
}
