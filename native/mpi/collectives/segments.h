/* Divides large messages into segments: those that have arrived spread inside the site while the rest is
 * under way. */
#ifndef TOPOLANE_MPI_SEGMENTS_H
#define TOPOLANE_MPI_SEGMENTS_H

#include "buffers.h"
#include "exchange.h"

/* The number of elements of a segment; all of them if the message is short, or too large to cross in
 * pieces. */
int segment_of(int count, MPI_Datatype type);

/* Sends or receives a message in segments, each a message of the exchange; together they count as one. */
void post_segments(Exchange *exchange, int rank, bool sends, void *buffer, int count, MPI_Datatype type);

/* Spreads the segments of a received message to the ranks of the site, each as it arrives. `*message` is
 * the index of the first segment in the exchange and is advanced past them. Collective over the ranks of
 * the site. `at` is the index of the representative in the site; it receives nothing if it already has the
 * message. */
int spread_segments(Exchange *exchange, int *message, void *buffer, int count, MPI_Datatype type, int at);

static inline int segment_length(int count, int segment, int at)
{
    return count - at < segment ? count - at : segment;
}

#endif
