/* Publishes facts about jobs for people: decisions, refusals and counters. A separate thread writes the files a second
 * after a change, so slurmctld never waits for a disk. The thread also checks for links out of service (links_out.h).
 * docs/reference/slurm-plugin.md describes the files. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_PUBLISH_H
#define TOPOLANE_PUBLISH_H

#include "record.h"
#include "report.h"

/* How the thread looks at jobs after each writing and every ten seconds. `begin` may wait for threads of slurmctld; if
 * publishing has ended meanwhile, `look` is not called. `end` is always called. */
typedef struct {
    bool (*is_due)(void);
    void (*begin)(void);
    void (*look)(void);
    void (*end)(void);
} Looks;

/* Starts publishing in a directory, for a machine of `nodes` nodes (0: no machine). `about` has lines about the machine
 * and what was assumed, or why the plugin is not active. `booted` is when slurmctld started, by which commands recognise
 * it; 0 if that is not known. Nothing is written before the first publish_called. */
void publish_open(const char *directory, const char *about, bool is_active, uint32_t nodes, time_t booted,
                  const Looks *looks);

/* Call this when a slurmctld in control calls the plugin. The first call starts the thread: by then slurmctld is a
 * daemon. */
void publish_called(void);

/* Records that a job holds nodes. */
void publish_running(Published_Job job);

/* Records that a job no longer holds nodes. */
void publish_gone(uint64_t job);

/* Records the number of links that are out of service or reserved. */
void publish_out(size_t links);

/* Records the number of Slurm's nodes that the machine file does not name, and one of them (NULL for none). */
void publish_unnamed(size_t nodes, const char *such_as);

/* Whether a job's last refusal is so old that it should be published again; and a function that records a refusal. */
bool publish_is_due(uint32_t job, time_t now);
void publish_refused(Refused refused, const uint32_t *candidates, size_t count);

/* Lets the thread finish its writing and ends it. If the disk does not answer, or the caller has what the thread waits for in
 * `begin`, the thread is abandoned. A look is waited for, so the caller must have nothing that `look` waits for. */
void publish_close(void);

#endif
