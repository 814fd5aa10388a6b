/* The policies that jobs may have inside slurmctld. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_POLICIES_H
#define TOPOLANE_POLICIES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;
    bool isolates;  /* no link carries traffic of two of its jobs */
    bool dedicates; /* and its jobs own links, so that they may share switches */
    bool is_stock;  /* the engine is not asked */
    bool keeps_segments; /* --segment holds: each segment lies in one domain or else on one leaf */
} Policy_Kind;

enum { POLICY_COUNT = 11 };

/* The first is stock Slurm. */
extern const Policy_Kind POLICIES[POLICY_COUNT];

/* The policy of a name; NULL if there is none. Then `*why` is a sentence that the caller frees, or NULL without memory. */
const Policy_Kind *policy_named(const char *name, char **why);

/* Reads a minimum bandwidth share, a number from 0.01 to 1. False if it is not one. */
bool bandwidth_share_read(const char *value, double *share);

#endif
