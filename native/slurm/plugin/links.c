#define _GNU_SOURCE
#include "links.h"

#include <stdlib.h>

#include "report.h"

static bool holds_or_is(uint64_t job, void *with)
{
    return job == *(uint64_t *)with || holders_find(&driver.holders, job) != NO_SLOT;
}

/* Writes the file with the jobs that hold nodes, and with `job`, which may start. */
static void write_file(uint64_t job)
{
    owners_keep(&driver.owners, holds_or_is, &job);
    char *why = owners_write(&driver.owners, driver.owners_path);
    if (why) {
        ++counters.links_unwritten;
        say(SAY_LINKS, "links of jobs cannot be kept for a restart: %s", why);
        free(why);
    }
}

void links_held(void)
{
    if (driver.owners_path)
        write_file(0);
}

void links_none(const job_record_t *job)
{
    const Owned *owned = owners_find(&driver.owners, job->job_id);
    if (!owned || holders_find(&driver.holders, job->job_id) != NO_SLOT)
        return;
    bool in_file = owned->in_file;
    owners_remove(&driver.owners, job->job_id);
    /* Otherwise its entry in the file would come back after a restart. */
    if (in_file)
        write_file(job->job_id);
}

void links_given(const job_record_t *job, const Choice *choice, bitstr_t *nodes, bool is_hypothesis)
{
    uint64_t number = job->job_id;
    topolane_numbers links = driver.engine.decision_links(choice->decision);
    if (holders_find(&driver.holders, number) != NO_SLOT)
        return; /* The job already runs, with the links that it got before. */
    if (!links.count) {
        if (!is_hypothesis)
            links_none(job);
        return;
    }
    Owned owned = {
        .job = number,
        .links = (uint32_t *)links.first,
        .link_count = links.count,
        .bandwidth_share = driver.engine.decision_bandwidth_share(choice->decision),
    };
    owned.nodes = driver_nodes(nodes, &owned.node_count);
    const Owned *known = owned.nodes ? owners_set(&driver.owners, &owned) : NULL;
    free(owned.nodes);
    if (!known)
        say(SAY_LINKS, "no memory for the links of job %u", job->job_id);
    else if (!is_hypothesis && !known->in_file && driver.owners_path)
        write_file(number);
}
