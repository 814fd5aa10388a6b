#include "preemption.h"

#include <string.h>

/* As the two plugins of Slurm see it. */
static bool may_preempt(const job_record_t *job, const job_record_t *other)
{
    const char *type = slurm_conf.preempt_type;
    if (type && !strcmp(type, "preempt/qos"))
        return job->qos_ptr && other->qos_ptr && job->qos_ptr->preempt_bitstr &&
               other->qos_ptr->id < bit_size(job->qos_ptr->preempt_bitstr) &&
               bit_test(job->qos_ptr->preempt_bitstr, other->qos_ptr->id);
    if (type && !strcmp(type, "preempt/partition_prio"))
        return job->part_ptr && other->part_ptr && job->part_ptr->priority_tier > other->part_ptr->priority_tier;
    return false;
}

bool preemption_spares(const job_record_t *job, bitstr_t *nodes)
{
    bool any = false;
    for (size_t index = 0; index < driver.holders.count; index++) {
        Holder *holder = &driver.holders.list[index];
        if (!holder->is_gone || bit_overlap_any(holder->map, nodes))
            continue;
        const job_record_t *other = find_job_record((uint32_t)holder->job);
        if (other && may_preempt(job, other)) {
            holder->is_gone = false;
            any = true;
        }
    }
    return any;
}
