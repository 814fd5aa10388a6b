/* Measures the time waited for other ranks in collectives that no rank leaves before all have entered. */
#ifndef TOPOLANE_SKEW_H
#define TOPOLANE_SKEW_H

#include "counts.h"

/* Adds the time of a call beyond the least time of similar calls so far: the same call, in a communicator
 * of about this size, with about the same number of bytes (within a power of two). */
void waited(int call, int size, uint64_t bytes, uint64_t spent);

#endif
