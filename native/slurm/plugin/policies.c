#define _GNU_SOURCE
#include "policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Policy_Kind POLICIES[POLICY_COUNT] = {
    {.name = "stock", .is_stock = true},
    {.name = "first-fit"},
    {.name = "slurm-tree"},
    {.name = "hop-bytes"},
    {.name = "isolated", .isolates = true},
    {.name = "isolated-global", .isolates = true, .between_groups = true},
    {.name = "jigsaw", .isolates = true, .dedicates = true},
    {.name = "dedicated", .isolates = true, .dedicates = true},
    {.name = "slurm-block", .keeps_segments = true},
    {.name = "segments", .keeps_segments = true},
    {.name = "segments-isolated", .isolates = true, .keeps_segments = true},
    {.name = "segments-dedicated", .isolates = true, .dedicates = true, .keeps_segments = true},
};

const Policy_Kind *policy_named(const char *name, char **why)
{
    *why = NULL;
    for (size_t index = 0; index < POLICY_COUNT; index++)
        if (!strcmp(POLICIES[index].name, name))
            return &POLICIES[index];
    int length;
    if (strpbrk(name, ":./"))
        length = asprintf(why, "%s is a policy in Python, and nothing runs Python inside slurmctld", name);
    else {
        char names[256] = "";
        for (size_t index = 0; index < POLICY_COUNT; index++) {
            strcat(names, index ? ", " : "");
            strcat(names, POLICIES[index].name);
        }
        length = asprintf(why, "there is no policy '%s'; there are %s", name, names);
    }
    if (length < 0)
        *why = NULL;
    return NULL;
}

bool bandwidth_share_read(const char *value, double *share)
{
    char *end;
    *share = strtod(value, &end);
    return end != value && !*end && *share >= 0.01 && *share <= 1;
}
