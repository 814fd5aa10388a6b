/* Links that no new job may own: those that have failed and those that are reserved for services, as `topolane slurm outages`
 * writes them to a file. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_LINKS_OUT_H
#define TOPOLANE_LINKS_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t *links; /* the reserved ones, then those that have failed; a link may be both */
    size_t reserved, failed;
} Links_Out;

/* How many links there are, each counted once. */
size_t links_out_count(const Links_Out *out);

bool links_out_same(const Links_Out *one, const Links_Out *other);

void links_out_free(Links_Out *out);

/* Reads the file; without a file nothing is out. The file must be whole and of this machine (a sum of the machine file). Returns
 * NULL, or a sentence that the caller frees; then nothing is out. */
char *links_out_read(Links_Out *out, const char *path, uint64_t machine);

/* The file may change at any time, and slurmctld must not wait for a disk. So one thread looks at the file, and another one takes
 * what was found. Opens the file topolane_links_out in a directory. */
void links_out_open(const char *directory, uint64_t machine);

/* Reads the file if it has changed. Any thread may call this. */
void links_out_look(void);

/* Takes what was found since the last call. False if there is nothing new. Otherwise the caller frees the list, or the sentence
 * that says why the file cannot be used. It does not wait for a look. */
bool links_out_take(Links_Out *out, char **why);

void links_out_close(void);

#endif
