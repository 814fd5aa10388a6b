#include "reason.h"

/* A call that only tests whether a job could ever run must succeed, and cannot be distinguished from one that asks about
 * now. So an answer cannot give Slurm the reason. */

enum { MOST = 64 };

typedef struct {
    uint32_t job;
    int code;
} Reason;

static Reason refused[MOST];
static size_t count;

void reason_refused(const job_record_t *job, bool has_segments)
{
    int code = REFUSAL(has_segments);
    if (code == SLURM_SUCCESS || !job->job_id || (count && refused[count - 1].job == job->job_id))
        return;
    if (count == MOST)
        reason_write();
    refused[count++] = (Reason){job->job_id, code};
}

void reason_write(void)
{
    for (size_t index = 0; index < count; index++) {
        job_record_t *job = find_job_record(refused[index].job);
        if (!job || !IS_JOB_PENDING(job) || job->state_reason != WAIT_RESOURCES || job->state_desc)
            continue;
        job->state_desc = xstrdup(slurm_strerror(refused[index].code));
        last_job_update = time(NULL);
    }
    count = 0;
}
