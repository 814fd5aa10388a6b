/* Links that no new job may own: failed links and links reserved for services, as `topolane slurm outages` writes them
 * to a file. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_LINKS_OUT_H
#define TOPOLANE_LINKS_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t *links; /* first the reserved links, then the failed ones; a link may be both */
    size_t reserved, failed;
} Links_Out;

/* The number of different links. */
size_t links_out_count(const Links_Out *out);

bool links_out_same(const Links_Out *one, const Links_Out *other);

void links_out_free(Links_Out *out);

/* Reads the file; without a file, no link is out. The file must be complete and of this machine (a checksum of the
 * machine file). Returns NULL, or a sentence that the caller frees; then no link is out. */
char *links_out_read(Links_Out *out, const char *path, uint64_t machine);

/* Opens the file topolane_links_out in a directory. The file may change at any time, and slurmctld must not wait for a
 * disk. So one thread reads the file, and another one takes the result. */
void links_out_open(const char *directory, uint64_t machine);

/* Reads the file if it has changed. Any thread may call this. */
void links_out_look(void);

/* Takes the result of the latest look. Returns false if there is nothing new. Otherwise the caller frees the list, or
 * the sentence that says why the file cannot be used. This never waits for a look. */
bool links_out_take(Links_Out *out, char **why);

void links_out_close(void);

#endif
