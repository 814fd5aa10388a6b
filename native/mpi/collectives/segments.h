/* Large messages in segments: what has come goes on inside the site while the rest is under way. */
#ifndef TOPOLANE_MPI_SEGMENTS_H
#define TOPOLANE_MPI_SEGMENTS_H

#include "buffers.h"
#include "exchange.h"

/* Elements of a segment; all of them where the message is short, or too large to cross in pieces. */
int segment_of(int count, MPI_Datatype type);

/* Sends or receives a message in segments, each a message of the exchange; together they count as one. */
void post_segments(Exchange *exchange, int rank, bool sends, void *buffer, int count, MPI_Datatype type);

/* Gives the segments of a received message to the ranks of the site, each as it comes. `*message` is where they are
 * in the exchange, and is left behind them. Of all ranks of the site; `at` is the representative's place in it, and
 * a representative that has the message already received nothing. */
int spread_segments(Exchange *exchange, int *message, void *buffer, int count, MPI_Datatype type, int at);

static inline int segment_length(int count, int segment, int at)
{
    return count - at < segment ? count - at : segment;
}

#endif
