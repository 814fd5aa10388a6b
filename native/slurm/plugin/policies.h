/* The policies that jobs may have inside slurmctld. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_POLICIES_H
#define TOPOLANE_POLICIES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;
    bool isolates;  /* no link carries traffic of two of its jobs */
    bool between_groups; /* this holds only of links between the groups of a dragonfly */
    bool dedicates; /* in addition, its jobs own links, so they may share switches */
    bool is_stock;  /* the engine is not asked */
    bool keeps_segments; /* supports --segment: each segment lies in one domain, or else on one leaf */
} Policy_Kind;

enum { POLICY_COUNT = 12 };

/* The first entry is stock Slurm. */
extern const Policy_Kind POLICIES[POLICY_COUNT];

/* The policy with this name; NULL if there is none. Then `*why` is a sentence that the caller frees, or NULL without
 * memory. */
const Policy_Kind *policy_named(const char *name, char **why);

/* Reads a minimum bandwidth share, a number from 0.01 to 1. Returns false for any other text. */
bool bandwidth_share_read(const char *value, double *share);

#endif
