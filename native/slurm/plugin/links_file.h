/* The links that each job owns, in memory and in a file that survives a restart of slurmctld. Knows neither Slurm nor
 * the engine. */
#ifndef TOPOLANE_LINKS_FILE_H
#define TOPOLANE_LINKS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The links and nodes that a job was given. */
typedef struct {
    uint64_t job;
    uint32_t *nodes; /* the machine's numbers, ascending */
    size_t node_count;
    uint32_t *links;
    size_t link_count;
    double bandwidth_share;
    bool in_file; /* the file has the same entry */
} Owned;

typedef struct {
    Owned *list; /* by job, ascending */
    size_t count;
    uint64_t machine; /* checksum of the machine file that numbers the nodes and links */
} Owners;

/* The entry of a job; NULL if there is none. */
const Owned *owners_find(const Owners *owners, uint64_t job);

/* Records in memory what a job is given; copies the arrays. Returns the new entry; NULL without memory. */
const Owned *owners_set(Owners *owners, const Owned *owned);

/* Removes the entry of a job. Returns whether there was one. */
bool owners_remove(Owners *owners, uint64_t job);

/* Removes the jobs for which `keep` returns false. */
void owners_keep(Owners *owners, bool (*keep)(uint64_t job, void *with), void *with);

void owners_free(Owners *owners);

/* Writes a new file and renames it over the old one. Returns NULL, or a sentence that the caller frees. */
char *owners_write(Owners *owners, const char *path);

/* Reads the file, if there is one. A file of another machine, with a wrong checksum, or with another format counts as
 * missing, and the returned sentence, which the caller frees, says so. `owners` must have no job, and its `machine` must
 * be set. The time is linear in the size of the file, because slurmctld waits for it. */
char *owners_read(Owners *owners, const char *path);

/* The checksum of some bytes (FNV-1a), and one that continues from the checksum of earlier bytes. */
#define SUM_OF_NOTHING UINT64_C(14695981039346656037)
uint64_t sum_of(const char *bytes, size_t length);
uint64_t sum_on(uint64_t sum, const char *bytes, size_t length);

#endif
