/* Counters of messages by peer, and of calls. */
#include "counts.h"

#include <stdlib.h>

Counts counts;
_Atomic bool watching;
bool many_threads;
_Thread_local Inside inside __attribute__((tls_model("initial-exec")));
_Thread_local uintptr_t entered_at __attribute__((tls_model("initial-exec")));

bool counts_open(int rank, int ranks)
{
    counts.peers = calloc((size_t)ranks, sizeof *counts.peers);
    counts.rank = rank;
    counts.ranks = ranks;
    counts.round = 1;
    return counts.peers != NULL;
}

/* Counts an entry that changes for the first time since the last report. */
void counts_changed(_Atomic uint32_t *round)
{
    atomic_store_explicit(round, atomic_load_explicit(&counts.round, memory_order_relaxed), memory_order_relaxed);
    uint32_t before = atomic_fetch_add_explicit(&counts.changed, 1, memory_order_relaxed);
    if (before + 1 == counts.wake_at)
        report_wake();
}

/* Creates the counters of a peer. Several threads may try at once. */
static Peer *first_spoken_to(int world_rank)
{
    Peer *made = calloc(1, sizeof *made), *found = NULL;
    if (made && !atomic_compare_exchange_strong(&counts.peers[world_rank], &found, made)) {
        free(made);
        made = found;
    }
    return made;
}

static Peer *peer_of(int world_rank)
{
    if (world_rank < 0 || world_rank >= counts.ranks)
        return NULL;
    Peer *peer = atomic_load_explicit(&counts.peers[world_rank], memory_order_acquire);
    return peer ? peer : first_spoken_to(world_rank);
}

void count_sent(int world_rank, Kind kind, uint64_t messages, uint64_t bytes)
{
    Peer *peer = peer_of(world_rank);
    if (!peer)
        return;
    PeerCount *count = &peer->of[kind];
    add(&count->messages, messages);
    add(&count->bytes, bytes);
    atomic_store_explicit(&peer->waiting, true, memory_order_relaxed);
    changed(&count->round);
}

void count_received(int world_rank, Kind kind)
{
    Peer *peer = peer_of(world_rank);
    if (!peer || !atomic_load_explicit(&peer->waiting, memory_order_relaxed))
        return;
    if (!many_threads)
        atomic_store_explicit(&peer->waiting, false, memory_order_relaxed);
    else if (!atomic_exchange_explicit(&peer->waiting, false, memory_order_relaxed))
        return;
    add(&peer->of[kind].turns, 1);
    changed(&peer->of[kind].round);
}

void count_fetched(int world_rank, uint64_t bytes)
{
    Peer *peer = peer_of(world_rank);
    if (!peer)
        return;
    PeerCount *count = &peer->of[FETCHED];
    add(&count->messages, 1);
    add(&count->bytes, bytes);
    add(&count->turns, 1);
    changed(&count->round);
}
