/* Which links each job owns: in memory, and in a file that survives slurmctld. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_LINKS_FILE_H
#define TOPOLANE_LINKS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a job was given. */
typedef struct {
    uint64_t job;
    uint32_t *nodes; /* of the machine, ascending */
    size_t node_count;
    uint32_t *links;
    size_t link_count;
    double bandwidth_share;
    bool in_file; /* the file says the same of it */
} Owned;

typedef struct {
    Owned *list; /* by job, ascending */
    size_t count;
    uint64_t machine; /* the numbers of nodes and links are those of this machine: a sum of its file */
} Owners;

/* What a job was given; NULL if nothing is known. */
const Owned *owners_find(const Owners *owners, uint64_t job);

/* Writes down in memory what a job is given; copies the arrays. Returns what is known of the job now; NULL without memory. */
const Owned *owners_set(Owners *owners, const Owned *owned);

/* Returns whether anything was known of the job. */
bool owners_remove(Owners *owners, uint64_t job);

/* Removes the jobs that `keep` does not want. */
void owners_keep(Owners *owners, bool (*keep)(uint64_t job, void *with), void *with);

void owners_free(Owners *owners);

/* Writes a new file and puts it in the place of the old one. Returns NULL, or a sentence that the caller frees. */
char *owners_write(Owners *owners, const char *path);

/* Reads the file, if there is one. One of another machine, with a wrong sum, or that owners_write does not write is as if there were
 * none, and the sentence that the caller frees says so. `owners` has no job and its `machine` is set before. The time is linear in
 * the size of the file: slurmctld waits for it. */
char *owners_read(Owners *owners, const char *path);

/* A sum of some bytes (FNV-1a), and one that goes on after other bytes. */
#define SUM_OF_NOTHING UINT64_C(14695981039346656037)
uint64_t sum_of(const char *bytes, size_t length);
uint64_t sum_on(uint64_t sum, const char *bytes, size_t length);

#endif
