/* The reason that squeue shows for a job that the plugin lets wait, from 26.05 on. */
#ifndef TOPOLANE_REASON_H
#define TOPOLANE_REASON_H

#include "release.h"

/* Call this when a job is refused: it waits for a place, or for one for its segments. */
void reason_refused(const job_record_t *job, bool has_segments);

/* Call this at the beginning of a call: writes the reasons of the jobs that were refused before. Slurm writes its own after
 * a refusal, and has then done so. */
void reason_write(void);

#endif
