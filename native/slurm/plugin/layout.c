#include "layout.h"

#include "release.h"

static Layout layout;

static bool differs(void *record, size_t size)
{
    return record && xsize(record) != size;
}

Layout layout_compared(void)
{
    job_record_t *job = layout == LAYOUT_UNKNOWN ? list_peek(job_list) : NULL;
    if (!job)
        return layout;
    void *node = NULL;
    for (int index = 0; index < node_record_count && !node; index++)
        node = node_record_table_ptr[index];
    /* The first comparison comes first: it says whether the other pointers are where they are expected. */
    bool is_other = differs(job, sizeof(job_record_t)) || differs(job->details, sizeof(job_details_t)) ||
                    differs(job->part_ptr, sizeof(part_record_t)) || differs(node, sizeof(node_record_t));
    if (is_other)
        layout = LAYOUT_DIFFERS;
    else if (job->details && job->part_ptr && node)
        layout = LAYOUT_FITS;
    return layout;
}
