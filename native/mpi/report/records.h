/* What was counted since the last time, as frames. */
#ifndef TOPOLANE_RECORDS_H
#define TOPOLANE_RECORDS_H

#include "frames.h"

/* Where the clock of the counters began, to tell its unit. */
void records_begin(void);
/* Makes frames of all that changed; they get the sequences after `*sequence`. Answers with the frames that there
 * was no memory for. `even_if_idle`: also of an interval in which nothing changed. */
uint64_t records_make(Kept *kept, uint64_t *sequence, bool even_if_idle);

#endif
