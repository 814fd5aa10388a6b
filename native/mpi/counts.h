/* The counters of this process, and the functions with which wrappers use them. */
#ifndef TOPOLANE_COUNTS_H
#define TOPOLANE_COUNTS_H

#include <stdatomic.h>

#include "calls.h"
#include "nested.h"
#include "stack.h"
#include "ticks.h"
#include "topolane_mpi.h"

#define EXPORT __attribute__((visibility("default")))

/* The counters for one kind of traffic with a peer. The program's threads add, and the thread of `report`
 * reads. */
typedef struct {
    _Atomic uint64_t messages, bytes, turns;
    _Atomic uint32_t round;    /* the report in which it last changed */
    uint64_t reported[3];      /* used only by the thread of `report` */
} PeerCount;

typedef struct {
    _Atomic bool waiting;      /* something, of any kind, was sent since the last receive */
    PeerCount of[KINDS];
} Peer;

typedef struct {
    _Atomic uint64_t calls, bytes, ticks;
    _Atomic uint32_t round;
    uint64_t reported[3];
} CallCount;

typedef struct {
    int rank, ranks;                     /* in MPI_COMM_WORLD */
    _Atomic(Peer *) *peers;              /* by world rank; NULL before the first message */
    CallCount calls[MOST_CALLS];
    _Atomic uint64_t skew;               /* in ticks */
    _Atomic uint32_t round, changed;     /* number of this report, and of entries changed since the last one */
    uint32_t wake_at;                    /* number of changed entries that wakes the thread of `report`; 0: none */
} Counts;

extern Counts counts;
extern _Atomic bool watching;    /* true between MPI_Init and MPI_Finalize, while the counts are used */
extern bool many_threads;        /* MPI_THREAD_MULTIPLE: additions must be atomic */
/* Whether this thread is in a watched call. UNDECIDED: the program may have left that call without
 * returning (nested.h). */
typedef enum __attribute__((packed)) { OUTSIDE, INSIDE, UNDECIDED } Inside;
_Static_assert(sizeof(Inside) == 1, "as on_own_stack.h takes it");
extern _Thread_local Inside inside __attribute__((tls_model("initial-exec")));
/* An address on the stack of that call's wrapper. */
extern _Thread_local uintptr_t entered_at __attribute__((tls_model("initial-exec")));

/* Allocates memory for `ranks` peers. Returns false without memory. */
bool counts_open(int rank, int ranks);
/* Wakes the thread of report/. */
void report_wake(void);

static inline void add(_Atomic uint64_t *counter, uint64_t amount)
{
    if (__builtin_expect(many_threads, false))
        atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
    else
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                              memory_order_relaxed);
}

void counts_changed(_Atomic uint32_t *round);

static inline void changed(_Atomic uint32_t *round)
{
    if (atomic_load_explicit(round, memory_order_relaxed) !=
        atomic_load_explicit(&counts.round, memory_order_relaxed))
        counts_changed(round);
}

/* Starts a watched call; `began` is a variable of its wrapper. Returns false for a call of MPI itself
 * inside another one, and if watching is off. */
static inline bool enter(uint64_t *began)
{
    if (!atomic_load_explicit(&watching, memory_order_relaxed))
        return false;
    if (__builtin_expect(inside, false) && is_nested())
        return false;
    inside = INSIDE;
    entered_at = (uintptr_t)began;
    stack_wanted();
    *began = ticks();
    return true;
}

static inline void leave(int call, uint64_t spent, uint64_t bytes)
{
    CallCount *count = &counts.calls[call];
    add(&count->calls, 1);
    add(&count->bytes, bytes);
    add(&count->ticks, spent);
    changed(&count->round);
    inside = OUTSIDE;
}

/* Ends a watched call without counting it. */
static inline void leave_uncounted(void)
{
    inside = OUTSIDE;
}

/* The body of a wrapper. It calls `real`; if that succeeds, `then` runs, which may set `bytes`. */
#define WATCH(call, real, then)                 \
    do {                                        \
        uint64_t began, bytes = 0;              \
        if (!enter(&began))                     \
            return real;                        \
        int result = real;                      \
        uint64_t spent = ticks_since(began);    \
        if (result == MPI_SUCCESS) {            \
            then;                               \
        }                                       \
        leave(call, spent, bytes);              \
        return result;                          \
    } while (0)

/* The bytes of data in `count` elements of a type. The most usual types need no call of MPI. */
static inline uint64_t bytes_of(MPI_Count count, MPI_Datatype type)
{
    int size;
    if (count <= 0)
        return 0;
    if (type == MPI_DOUBLE)
        return (uint64_t)count * sizeof(double);
    if (type == MPI_BYTE || type == MPI_CHAR)
        return (uint64_t)count;
    if (type == MPI_INT)
        return (uint64_t)count * sizeof(int);
    /* A wrong call may have returned success, because the program's error handler dealt with it. */
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS)
        return 0;
    if (size == MPI_UNDEFINED) {
        MPI_Count large;
        return PMPI_Type_size_x(type, &large) == MPI_SUCCESS && large > 0 ? (uint64_t)(count * large) : 0;
    }
    return (uint64_t)count * (uint64_t)size;
}

/* The world rank of a rank in a communicator (in an intercommunicator, of its remote group); -1 for
 * MPI_PROC_NULL and the like. */
static inline int world_rank(const Communicator *communicator, int rank)
{
    return communicator && rank >= 0 && rank < communicator->peers ? communicator->world[rank] : -1;
}

#endif
