#include "segments.h"
#include "stages.h"

/* Measured with both MPIs over 20 ms (benches/mpi/delayed.py). With more and smaller segments, the MPI's
 * own collectives send whole copies down a tree, which costs more than it gains at a site with many ranks. */
enum { LEAST = 32 << 10, SEGMENTS = 4 };

int segment_of(int count, MPI_Datatype type)
{
    size_t all, each;
    if (!data_bytes(count, type, &all) || !data_bytes(1, type, &each) || all <= LEAST || all > MOST_IN_PIECES)
        return count;
    size_t segment = all / SEGMENTS > LEAST ? all / SEGMENTS : LEAST;
    return each < segment ? (int)(segment / each) : 1;
}

void post_segments(Exchange *exchange, int rank, bool sends, void *buffer, int count, MPI_Datatype type)
{
    int segment = segment_of(count, type);
    exchange->more = false;
    for (int at = 0; at < count; at += segment) {
        if (sends)
            exchange_send(exchange, rank, element_at(buffer, at, type), segment_length(count, segment, at), type);
        else
            exchange_receive(exchange, rank, element_at(buffer, at, type), segment_length(count, segment, at), type);
        exchange->more = true;
    }
    exchange->more = false;
}

int spread_segments(Exchange *exchange, int *message, void *buffer, int count, MPI_Datatype type, int at)
{
    Levels *levels = exchange->levels;
    int segment = segment_of(count, type), code = MPI_SUCCESS;
    for (int from = 0; from < count; from += segment) {
        if (levels->place[levels->rank] == at)
            exchange_wait(exchange, (*message)++);
        int inside =
            stage_bcast(levels, element_at(buffer, from, type), segment_length(count, segment, from), type, at);
        code = code == MPI_SUCCESS ? inside : code;
    }
    return code;
}
