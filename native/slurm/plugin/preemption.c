#include "preemption.h"

#include <string.h>

/* Follows the rules of Slurm's two preemption plugins. */
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

bool preemption_spares(const job_record_t *job, bitstr_t *nodes, uint64_t *gone)
{
    const Holders *holders = &driver.holders;
    const char *type = slurm_conf.preempt_type;
    bool any = false;
    if (!type || !strcmp(type, "preempt/none"))
        return false;
    for (uint32_t slot = 0; (slot = slot_next(gone, holders->words, slot)) != NO_SLOT; slot++) {
        if (bit_overlap_any(holders->list[slot].map, nodes))
            continue;
        const job_record_t *other = find_job_record((uint32_t)holders->list[slot].job);
        if (other && may_preempt(job, other)) {
            slot_clear(gone, slot);
            any = true;
        }
    }
    return any;
}
