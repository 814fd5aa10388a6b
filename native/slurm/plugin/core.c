#include "core.h"

#include "driver.h"
#include "place.h"
#include "publish.h"
#include "rank.h"
#include "release.h"
#include "segments.h"
#include "stock.h"

static unsigned users;
static const void *first;

static void open_core(void)
{
    if (!users++ && running_in_slurmctld() && &job_list && &idle_node_bitmap && &last_job_update && find_job_record)
        driver_open();
}

static void close_core(void)
{
    if (users && !--users) {
        driver_close();
        first = NULL;
    }
}

static void took_control(const void *context)
{
    first = first ? first : context;
    if (context != first)
        return;
    driver_took_control();
    publish_called(); /* Publish right after taking control whether the plugin is active. */
}

static int place_with(void *asked, const Stock *with)
{
    stock_now = with;
    return place(asked);
}

static bool rank(void *nodes, uint32_t **ranks, uint32_t *count)
{
    return rank_nodes(nodes, ranks, count);
}

/* Stock plugins other than topology/block store nothing, so what is there is the segments of this plugin. */
static bool free_segments(void *stored, const Stock *with)
{
    bool are_ours = segments_are_stored_by(with);
    if (are_ours)
        segments_free(stored);
    return are_ours;
}

static bool get_segments(void *stored, void *list, const Stock *with)
{
    bool are_ours = stored && segments_are_stored_by(with);
    if (are_ours)
        *(list_t **)list = segments_of(stored);
    return are_ours;
}

const Core topolane_core = {
    CORE_INTERFACE,       SLURM_VERSION_NUMBER, open_core,     close_core,
    took_control,         driver_has_policies,  place_with,    driver_check,
    driver_nodes_changed, rank,                 free_segments, get_segments,
};
