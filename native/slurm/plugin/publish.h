/* What people may read of the plugin: which job has which policy, which jobs were refused, and the counters. A thread of its own
 * writes the files a second after something changed, so that slurmctld never waits for a disk. It also looks whether links are out
 * of service (links_out.h). docs/reference/slurm-plugin.md describes the files. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_PUBLISH_H
#define TOPOLANE_PUBLISH_H

#include "report.h"
#include "waiting.h"

typedef struct {
    uint64_t job;
    const char *policy;
    const char *link_use; /* isolated, shared or none */
    double bandwidth_share;
} Published_Job;

/* Begins to publish in a directory, about a machine of `nodes` nodes (0: no machine). `about` are lines: the machine
 * and what was assumed of it, or why the plugin is not active. Nothing is written before the first publish_called. */
void publish_open(const char *directory, const char *about, bool is_active, uint32_t nodes);

/* The plugin was called by a slurmctld in control. The first time this starts the thread: by then slurmctld is a daemon. */
void publish_called(void);

/* A job holds nodes, or has just been given some. */
void publish_running(Published_Job job);

/* A job does not hold nodes any more. */
void publish_gone(uint64_t job);

/* The number of links that are out of service or reserved. */
void publish_out(size_t links);

/* Whether a job's last refusal is so old that it should be published again, and the refusal. */
bool publish_is_due(uint32_t job, time_t now);
void publish_refused(Refused refused, const uint32_t *candidates, size_t count);

/* Ends the thread when it has written what it has. It is left behind if the disk does not answer. */
void publish_close(void);

#endif
