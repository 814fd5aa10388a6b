/* Records of what the plugin decided for jobs, one line of JSON each: docs/reference/outputs.md lists the keys. Knows
 * neither Slurm nor the engine. */
#ifndef TOPOLANE_RECORD_H
#define TOPOLANE_RECORD_H

#include <stdio.h>

#include "waiting.h"

typedef struct {
    uint64_t job;
    const char *policy;
    int rule;             /* see Terms */
    const char *link_use; /* isolated, isolated-global, shared or none */
    double bandwidth_share;
} Published_Job;

/* Prints the record of a job that holds nodes. */
void record_running(FILE *to, const Published_Job *job);

/* Prints the record of a refused job. `candidates` has bits of the nodes that Slurm offered. */
void record_refused(FILE *to, const Refused *refused, const uint64_t *candidates, size_t words);

#endif
