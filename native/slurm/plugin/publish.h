/* The files that tell people what the plugin does. A thread of its own writes them, so that slurmctld never waits for a disk.
 * docs/reference/slurm-plugin.md describes them. Knows neither Slurm nor the engine. */
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

/* What is there at one moment. */
typedef struct {
    time_t moment;
    time_t started; /* when the plugin was loaded */
    bool is_active;
    char *about; /* lines: the machine and what was assumed of it, or why the plugin is not active */
    Counters counters;
    Published_Job *running;
    size_t running_count;
    Waiting waiting;
} Published;

/* Hands over what is there, with all that belongs to it. The first call starts the thread, for files in this directory. What
 * was handed over before and is not yet written is dropped. */
void publish(const char *directory, Published *published);

void published_free(Published *published);

/* Ends the thread when it has written what it has. It is left behind if the disk does not answer. */
void publish_close(void);

#endif
