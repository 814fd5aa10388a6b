/* Collectives: done in two levels, or by MPI and then modelled (models/). */
#include <stdlib.h>

#include "abilities.h"
#include "calls/on_own_stack.h"
#include "collectives/two_level.h"
#include "models/model.h"
#include "skew.h"

#define UNPACK(...) __VA_ARGS__

/* After a collective: sets its bytes and, unless the call counted its messages itself, runs its model. */
#define SEEN(BYTES, MODEL, counted)                                                          \
    const Communicator *of = result == MPI_SUCCESS ? communicator_of(comm) : NULL;           \
    if (of && !of->inter) {                                                                  \
        bytes = BYTES;                                                                       \
        if (!(counted)) {                                                                    \
            const Model *model = &(Model){of, NULL};                                         \
            MODEL;                                                                           \
        }                                                                                    \
    }

#define BLOCKING(Name, PARAMETERS, ARGUMENTS, TWO, BYTES, MODEL)                             \
    ON_OWN_STACK(NAME(Name), REAL(Name), NUMBER_OF ARGUMENTS)                                \
    EXPORT int NAME(Name) PARAMETERS                                                         \
    {                                                                                        \
        uint64_t began, bytes = 0;                                                           \
        int result = MPI_SUCCESS;                                                            \
        if (!enter(&began))                                                                  \
            return REAL(Name) ARGUMENTS;                                                     \
        bool counted = TWO;                                                                  \
        if (!counted)                                                                        \
            result = REAL(Name) ARGUMENTS;                                                   \
        uint64_t spent = ticks_since(began);                                                 \
        SEEN(BYTES, MODEL, counted)                                                          \
        if (of)                                                                              \
            waited(CALL_##Name, of->size, bytes, spent);                                     \
        leave(CALL_##Name, spent, bytes);                                                    \
        return result;                                                                       \
    }

#define NONBLOCKING(Name, PARAMETERS, ARGUMENTS, BYTES, MODEL)                               \
    ON_OWN_STACK(NAME(Name), REAL(Name), NUMBER_OF ARGUMENTS + 1)                            \
    EXPORT int NAME(Name)(UNPACK PARAMETERS, MPI_Request * request)                          \
    {                                                                                        \
        uint64_t began, bytes = 0;                                                           \
        if (!enter(&began))                                                                  \
            return REAL(Name)(UNPACK ARGUMENTS, request);                                    \
        int result = REAL(Name)(UNPACK ARGUMENTS, request);                                  \
        uint64_t spent = ticks_since(began);                                                 \
        SEEN(BYTES, MODEL, false)                                                            \
        leave(CALL_##Name, spent, bytes);                                                    \
        return result;                                                                       \
    }

/* What a start will count is the same each time, so it is computed once, when the request is made. */
#if PERSISTENT_COLLECTIVES
#define PERSISTENT(Name, PARAMETERS, ARGUMENTS, BYTES, MODEL)                                \
    ON_OWN_STACK(NAME(Name##_init), REAL(Name##_init), NUMBER_OF ARGUMENTS + 2)              \
    EXPORT int NAME(Name##_init)(UNPACK PARAMETERS, MPI_Info info, MPI_Request * request)    \
    {                                                                                        \
        uint64_t began;                                                                      \
        if (!enter(&began))                                                                  \
            return REAL(Name##_init)(UNPACK ARGUMENTS, info, request);                       \
        int result = REAL(Name##_init)(UNPACK ARGUMENTS, info, request);                     \
        const Communicator *of = result == MPI_SUCCESS ? communicator_of(comm) : NULL;       \
        Persistent *kept = of && !of->inter ? calloc(1, sizeof *kept) : NULL;                \
        if (kept) {                                                                          \
            const Model *model = &(Model){of, kept};                                         \
            kept->call = CALL_##Name;                                                        \
            kept->peer = -1;                                                                 \
            kept->bytes = BYTES;                                                             \
            uint64_t bytes = kept->bytes;                                                    \
            (void)bytes, (void)model;                                                        \
            MODEL;                                                                           \
            hold(request_key(*request), persistent(kept));                                   \
        }                                                                                    \
        leave_uncounted();                                                                   \
        return result;                                                                       \
    }
#else
#define PERSISTENT(Name, PARAMETERS, ARGUMENTS, BYTES, MODEL)
#endif

#define COLLECTIVE(Name, lower, PARAMETERS, ARGUMENTS, TWO, BYTES, MODEL) \
    BLOCKING(Name, PARAMETERS, ARGUMENTS, TWO, BYTES, MODEL)              \
    NONBLOCKING(I##lower, PARAMETERS, ARGUMENTS, BYTES, MODEL)            \
    PERSISTENT(Name, PARAMETERS, ARGUMENTS, BYTES, MODEL)

/* The bytes that this rank contributes, possibly in place. */
#define SHARE                                                                                    \
    (send == MPI_IN_PLACE ? bytes_of(receive_count, receive_type) : bytes_of(send_count, send_type))

#include "calls/small.h"
COLLECTIVE(Barrier, barrier, (MPI_Comm comm), (comm), two_level_barrier(comm, &result), 0,
           model_barrier(model))
#define BLOCKS(counts, displs) ((Blocks){counts, displs, NULL, NULL})
#define LOCAL(name) name##_small
#include "calls/rooted.h"
#include "calls/rootless.h"
#if LARGE_COUNTS
#include "calls/large.h"
#undef BLOCKS
#undef LOCAL
#define BLOCKS(counts, displs) ((Blocks){NULL, NULL, counts, displs})
#define LOCAL(name) name##_large
#include "calls/rooted.h"
#include "calls/rootless.h"
#endif
