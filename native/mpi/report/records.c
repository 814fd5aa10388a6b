/* Finds what was added to the counters since the last report. */
#include "records.h"

#include <string.h>

#include "../counts.h"

enum { FIXED = 40, ENTRY = 32, MOST_ENTRIES = 2000 };

typedef struct {
    double time, length, in_mpi, skew;
    uint32_t peers, calls;
} Fixed;

typedef struct {
    uint32_t peer, kind;
    uint64_t messages, bytes, turns;
} PeerEntry;

typedef struct {
    uint32_t call, reserved;
    uint64_t calls, bytes;
    double seconds;
} CallEntry;

_Static_assert(sizeof(Fixed) == FIXED && sizeof(PeerEntry) == ENTRY && sizeof(CallEntry) == ENTRY, "as on the wire");

/* The state while the records of an interval are written, one frame after another. */
typedef struct {
    Kept *kept;
    uint64_t *sequence;
    Fixed fixed;
    PeerEntry peer[MOST_ENTRIES];
    CallEntry call[MOST_CALLS];
    uint64_t lost;
    bool wanted;
} Writing;

static struct {
    uint64_t ticks, time;              /* when the counters began */
    uint64_t last;                     /* time of the last report */
    uint64_t skew;                     /* the skew already reported */
} clocks;

void records_begin(void)
{
    clocks.ticks = ticks();
    clocks.time = clocks.last = nanoseconds(CLOCK_MONOTONIC);
}

static double seconds_per_tick(void)
{
    uint64_t passed = ticks_since(clocks.ticks);
    return passed ? 1e-9 * (double)(nanoseconds(CLOCK_MONOTONIC) - clocks.time) / (double)passed : 0;
}

static void flush(Writing *writing)
{
    size_t peers = writing->fixed.peers * sizeof(PeerEntry), calls = writing->fixed.calls * sizeof(CallEntry);
    if (!peers && !calls && !writing->wanted)
        return;
    Frame *frame = frame_new(FIXED + peers + calls);
    if (frame) {
        unsigned char *payload = frame->bytes + HEADER;
        memcpy(payload, &writing->fixed, FIXED);
        memcpy(payload + FIXED, writing->peer, peers);
        memcpy(payload + FIXED + peers, writing->call, calls);
        frame_seal(frame, RECORDS, ++*writing->sequence, FIXED + peers + calls);
        kept_add(writing->kept, frame);
    } else {
        writing->lost++;
    }
    writing->fixed = (Fixed){.time = writing->fixed.time};
    writing->wanted = false;
}

/* What was added to a counter since the last report. Reading between two additions of another thread does
 * no harm. */
static uint64_t since(_Atomic uint64_t *counter, uint64_t *reported)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed), before = *reported;
    *reported = now;
    return now - before;
}

static void write_peer(Writing *writing, uint32_t rank, uint32_t kind, PeerCount *count)
{
    PeerEntry entry = {
        rank, kind, since(&count->messages, &count->reported[0]), since(&count->bytes, &count->reported[1]),
        since(&count->turns, &count->reported[2]),
    };
    if (!entry.messages && !entry.bytes && !entry.turns)
        return;
    writing->peer[writing->fixed.peers++] = entry;
    if (writing->fixed.peers == MOST_ENTRIES)
        flush(writing);
}

static void write_calls(Writing *writing, double unit)
{
    for (uint32_t call = 0; call < MOST_CALLS; call++) {
        CallCount *count = &counts.calls[call];
        uint64_t calls = since(&count->calls, &count->reported[0]), bytes = since(&count->bytes, &count->reported[1]);
        double seconds = unit * (double)since(&count->ticks, &count->reported[2]);
        writing->fixed.in_mpi += seconds;
        if (calls || bytes || seconds > 0)
            writing->call[writing->fixed.calls++] = (CallEntry){call, 0, calls, bytes, seconds};
    }
}

uint64_t records_make(Kept *kept, uint64_t *sequence, bool even_if_idle)
{
    static Writing writing;    /* used only by this thread, and too large for its stack */
    uint64_t now = nanoseconds(CLOCK_MONOTONIC);
    double unit = seconds_per_tick();
    writing.kept = kept;
    writing.sequence = sequence;
    writing.lost = 0;
    writing.wanted = even_if_idle;
    writing.fixed = (Fixed){
        .time = 1e-9 * (double)nanoseconds(CLOCK_REALTIME),
        .length = 1e-9 * (double)(now - clocks.last),
        .skew = unit * (double)since(&counts.skew, &clocks.skew),
    };
    clocks.last = now;
    atomic_store_explicit(&counts.changed, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts.round, 1, memory_order_relaxed);
    write_calls(&writing, unit);
    for (int rank = 0; rank < counts.ranks; rank++) {
        Peer *peer = atomic_load_explicit(&counts.peers[rank], memory_order_acquire);
        for (uint32_t kind = 0; peer && kind < KINDS; kind++)
            write_peer(&writing, (uint32_t)rank, kind, &peer->of[kind]);
    }
    flush(&writing);
    return writing.lost;
}
