/* Puts what was counted since the last report into frames. */
#ifndef TOPOLANE_RECORDS_H
#define TOPOLANE_RECORDS_H

#include "frames.h"

/* Reads the clocks at the start, from which the unit of ticks follows later. */
void records_begin(void);
/* Makes frames of everything that changed and numbers them after `*sequence`. Returns the number of frames
 * lost for lack of memory. `even_if_idle`: make one even if nothing changed. */
uint64_t records_make(Kept *kept, uint64_t *sequence, bool even_if_idle);

#endif
