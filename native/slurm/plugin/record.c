#include "record.h"

#include <inttypes.h>

#include "config.h"

/* Prints what all records begin with. No value needs escaping in JSON. */
static void begin(FILE *to, uint64_t job, const char *policy, int rule, double share)
{
    static const char *const others[] = {
        [RULE_OTHERWISE] = "no line of topolane.conf fits it",
        [-RULE_OPTION] = "its own option --topolane",
        [-RULE_STOCK] = "the engine could not answer when it started: its SystemComment says why",
    };
    fprintf(to, "{\"job\":%" PRIu64 ",\"policy\":\"%s\",\"share\":%g,\"rule\":\"", job, policy, share);
    if (rule > 0)
        fprintf(to, "topolane.conf line %d\"", rule);
    else
        fprintf(to, "%s\"", others[-rule]);
}

void record_running(FILE *to, const Published_Job *job)
{
    begin(to, job->job, job->policy, job->rule, job->bandwidth_share);
    fprintf(to, ",\"link_use\":\"%s\"}\n", job->link_use);
}

/* Prints the set bits in the form `0-3,8`. */
static void print_bits(FILE *to, const uint64_t *bits, size_t words)
{
    size_t end = words * 64, printed = 0;
    for (size_t bit = 0; bit < end; bit++) {
        if (!(bits[bit / 64] >> bit % 64 & 1))
            continue;
        size_t last = bit;
        while (last + 1 < end && bits[(last + 1) / 64] >> (last + 1) % 64 & 1)
            last++;
        fprintf(to, last > bit ? "%s%zu-%zu" : "%s%zu", printed++ ? "," : "", bit, last);
        bit = last;
    }
}

void record_refused(FILE *to, const Refused *refused, const uint64_t *candidates, size_t words)
{
    begin(to, refused->job, refused->policy, refused->rule, refused->min_bandwidth);
    fputs(",\"offered\":\"", to);
    print_bits(to, candidates, words);
    fprintf(to, "\",\"refusal\":{\"kind\":\"%s\",\"wanted\":%" PRIu32 ",\"time\":%" PRId64 "}}\n", refused->kind,
            refused->wanted, (int64_t)refused->refused);
}
