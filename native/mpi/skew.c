/* Waiting time is the duration of a synchronising call minus the duration of the call itself. */
#include "skew.h"

enum { SIZES = 24, LENGTHS = 48 };

/* The index of a synchronising call; -1 for other calls. */
static int table_of(int call)
{
    static const int synchronising[] = {CALL_Barrier,   CALL_Allreduce, CALL_Allgather,      CALL_Allgatherv,
                                        CALL_Alltoall,  CALL_Alltoallv, CALL_Alltoallw,      CALL_Reduce_scatter,
                                        CALL_Reduce_scatter_block};
    for (int at = 0; at < (int)(sizeof synchronising / sizeof *synchronising); at++)
        if (synchronising[at] == call)
            return at;
    return -1;
}

static int power_of_two(uint64_t value, int most)
{
    int power = value ? 64 - __builtin_clzll(value) : 0;
    return power < most ? power : most - 1;
}

void waited(int call, int size, uint64_t bytes, uint64_t spent)
{
    static _Atomic uint64_t least[9][SIZES][LENGTHS];
    int table = table_of(call);
    if (table < 0 || size < 2)
        return;
    _Atomic uint64_t *known = &least[table][power_of_two((uint64_t)size, SIZES)][power_of_two(bytes, LENGTHS)];
    uint64_t before = atomic_load_explicit(known, memory_order_relaxed);
    if (!before || spent < before)
        atomic_store_explicit(known, spent, memory_order_relaxed);
    else
        add(&counts.skew, spent - before);
}
