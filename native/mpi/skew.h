/* Time waited for others in collectives that no rank leaves before all have come. */
#ifndef TOPOLANE_SKEW_H
#define TOPOLANE_SKEW_H

#include "counts.h"

/* Adds what a call took beyond the least that any such call took here: the same call, in a communicator of about
 * this size, with about as many bytes (to a power of two). */
void waited(int call, int size, uint64_t bytes, uint64_t spent);

#endif
