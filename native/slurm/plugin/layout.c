#include "layout.h"

#include "release.h"

static Layout layout;

static bool differs(void *record, size_t size)
{
    return record && xsize(record) != size;
}

/* The first comparison comes first: it says whether the other pointers are where they are expected. */
static int compare(void *record, void *is_whole)
{
    job_record_t *job = record;
    bool is_other = differs(job, sizeof(job_record_t)) || differs(job->details, sizeof(job_details_t)) ||
                    differs(job->part_ptr, sizeof(part_record_t));
    if (is_other)
        layout = LAYOUT_DIFFERS;
    *(bool *)is_whole = job->details && job->part_ptr;
    return is_other || *(bool *)is_whole ? -1 : 0; /* A job that has ended may lack either. */
}

Layout layout_compared(void)
{
    if (layout != LAYOUT_UNKNOWN || !job_list)
        return layout;
    void *node = NULL;
    for (int index = 0; index < node_record_count && !node; index++)
        node = node_record_table_ptr[index];
    bool is_whole = false;
    if (differs(node, sizeof(node_record_t)))
        layout = LAYOUT_DIFFERS;
    else
        list_for_each_ro(job_list, compare, &is_whole);
    if (layout == LAYOUT_UNKNOWN && is_whole && node)
        layout = LAYOUT_FITS;
    return layout;
}
