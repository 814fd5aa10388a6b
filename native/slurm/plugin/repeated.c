#include "repeated.h"

#include <stdlib.h>
#include <string.h>

/* The last refused question. */
static struct {
    uint32_t job, least, most, wanted;
    Terms terms;
    time_t second;
    uint64_t changes; /* see Holders */
    bitstr_t *candidates;
    uint64_t *gone;
    size_t words; /* words of `gone`; 0 if no job was gone */
} last;

static size_t words_of(const uint64_t *gone)
{
    return gone ? driver.holders.words : 0;
}

bool repeated_refusal(const topology_eval_t *asked, const Terms *terms, const uint64_t *gone)
{
    return last.job && last.job == asked->job_ptr->job_id && last.second == time(NULL) &&
           last.terms.policy == terms->policy && last.terms.min_bandwidth == terms->min_bandwidth && last.changes == driver.holders.changes &&
           last.least == asked->min_nodes && last.most == asked->max_nodes && last.wanted == asked->req_nodes &&
           last.words == words_of(gone) && !memcmp(last.gone, gone ? gone : last.gone, last.words * sizeof *gone) &&
           bit_size(last.candidates) == bit_size(asked->node_map) && bit_equal(last.candidates, asked->node_map);
}

void repeated_refused(const topology_eval_t *asked, const Terms *terms, const uint64_t *gone)
{
    last.job = 0;
    uint64_t *more = realloc(last.gone, (words_of(gone) + 1) * sizeof *more);
    if (!more)
        return;
    last.gone = more;
    last.words = words_of(gone);
    if (gone)
        memcpy(last.gone, gone, last.words * sizeof *gone);
    if (last.candidates && bit_size(last.candidates) != bit_size(asked->node_map))
        FREE_NULL_BITMAP(last.candidates);
    COPY_BITMAP(last.candidates, asked->node_map);
    last.terms = *terms;
    last.second = time(NULL);
    last.changes = driver.holders.changes;
    last.least = asked->min_nodes;
    last.most = asked->max_nodes;
    last.wanted = asked->req_nodes;
    last.job = asked->job_ptr->job_id;
}
