/* A table of active requests that threads share without a lock.
 *
 * A key belongs to a bucket of eight slots, one cache line; a full bucket continues in the next table. A
 * request is removed before MPI may free its handle, so no two slots ever hold the same key. */
#include "requests.h"

#include <stdlib.h>

#include "communicator.h"

enum { BUCKETS = 1024, SLOTS = 8, ANY = 2, PERSISTENT = 4, TAG = 7 };

typedef struct {
    _Alignas(64) _Atomic uint64_t key[SLOTS];
    _Atomic Value value[SLOTS];
} Bucket;

typedef struct Table {
    Bucket bucket[BUCKETS];
    _Atomic(struct Table *) next;
} Table;

static Table first;
static _Atomic bool cancels;
static const uint64_t CLAIMED = UINT64_MAX;

static unsigned place(uint64_t key)
{
    return (unsigned)((key * 0x9E3779B97F4A7C15u) >> 54);
}

static Table *following(Table *table)
{
    Table *next = atomic_load_explicit(&table->next, memory_order_acquire), *none = NULL;
    if (next)
        return next;
    next = aligned_alloc(_Alignof(Table), sizeof *next);
    if (!next)
        return NULL;
    memset(next, 0, sizeof *next);
    if (atomic_compare_exchange_strong(&table->next, &none, next))
        return next;
    free(next);
    return none;
}

/* Takes a slot. If only one thread at a time calls MPI, no other thread competes for it. */
static bool claim(_Atomic uint64_t *key)
{
    uint64_t empty = 0;
    if (atomic_load_explicit(key, memory_order_relaxed))
        return false;
    return !many_threads ||
           atomic_compare_exchange_strong_explicit(key, &empty, CLAIMED, memory_order_acquire, memory_order_relaxed);
}

void hold(uint64_t key, Value value)
{
    for (Table *table = &first; value && table; table = following(table)) {
        Bucket *bucket = &table->bucket[place(key)];
        for (int slot = 0; slot < SLOTS; slot++) {
            if (!claim(&bucket->key[slot]))
                continue;
            atomic_store_explicit(&bucket->value[slot], value, memory_order_relaxed);
            atomic_store_explicit(&bucket->key[slot], key, memory_order_release);
            return;
        }
    }
}

static Value find(uint64_t key, bool keep_persistent)
{
    for (Table *table = &first; table; table = atomic_load_explicit(&table->next, memory_order_acquire)) {
        Bucket *bucket = &table->bucket[place(key)];
        for (int slot = 0; slot < SLOTS; slot++)
            if (atomic_load_explicit(&bucket->key[slot], memory_order_acquire) == key) {
                Value value = atomic_load_explicit(&bucket->value[slot], memory_order_relaxed);
                if (!keep_persistent || !is_persistent(value))
                    atomic_store_explicit(&bucket->key[slot], 0, memory_order_release);
                return value;
            }
    }
    return 0;
}

Value take(uint64_t key)
{
    return find(key, true);
}

void forget(uint64_t key)
{
    Value value = find(key, false);
    if (is_persistent(value))
        persistent_free(value);
    else if ((value & TAG) == ANY)
        communicator_release((Communicator *)(uintptr_t)(value - ANY));
}

Value receive_begun(MPI_Comm comm, int from)
{
    Communicator *communicator = communicator_of(comm);
    if (from != MPI_ANY_SOURCE || !communicator)
        return received_from(world_rank(communicator, from));
    communicator_hold(communicator);
    return (Value)(uintptr_t)communicator + ANY;
}

Value persistent(Persistent *made)
{
    return (Value)(uintptr_t)made + PERSISTENT;
}

bool is_persistent(Value value)
{
    return (value & TAG) == PERSISTENT;
}

static Persistent *persistent_of(Value value)
{
    return (Persistent *)(uintptr_t)(value - PERSISTENT);
}

void cancelled_some(void)
{
    atomic_store(&cancels, true);
}

bool needs_status(Value value)
{
    if (!value)
        return false;
    return (value & TAG) == ANY || (is_persistent(value) && persistent_of(value)->any) ||
           atomic_load_explicit(&cancels, memory_order_relaxed);
}

static bool was_cancelled(const MPI_Status *status)
{
    int cancelled = 0;
    if (atomic_load_explicit(&cancels, memory_order_relaxed) && status)
        PMPI_Test_cancelled(status, &cancelled);
    return cancelled != 0;
}

static void received_any(const Communicator *communicator, const MPI_Status *status)
{
    count_received(world_rank(communicator, status->MPI_SOURCE), POINT_TO_POINT);
}

void completed(Value value, const MPI_Status *status)
{
    if (!value)
        return;
    bool cancelled = was_cancelled(status);
    if (is_persistent(value)) {
        Persistent *done = persistent_of(value);
        if (!atomic_exchange(&done->active, false) || cancelled)
            return;
        if (done->any)
            received_any(done->any, status);
        else
            count_received(done->peer, POINT_TO_POINT);
    } else if ((value & TAG) == ANY) {
        Communicator *communicator = (Communicator *)(uintptr_t)(value - ANY);
        if (!cancelled)
            received_any(communicator, status);
        communicator_release(communicator);
    } else if (!cancelled) {
        count_received((int)(value >> 3), POINT_TO_POINT);
    }
}

void started(MPI_Request request)
{
    Value value = take(request_key(request));
    if (!is_persistent(value))
        return;
    Persistent *begun = persistent_of(value);
    atomic_store(&begun->active, true);
    for (int at = 0; at < begun->events; at++) {
        const Event *event = &begun->event[at];
        Kind kind = begun->call ? COLLECTIVE_MODELLED : POINT_TO_POINT;
        if (event->received)
            count_received(event->peer, kind);
        else
            count_sent(event->peer, kind, 1, event->bytes);
    }
    if (begun->call) {
        CallCount *count = &counts.calls[begun->call];
        add(&count->calls, 1);
        add(&count->bytes, begun->bytes);
        changed(&count->round);
    }
}

void persistent_free(Value value)
{
    Persistent *done = persistent_of(value);
    if (done->any)
        communicator_release(done->any);
    free(done->event);
    free(done);
}
