/* Looks at memory that another program laid out: an address may be anything, so it is proven before it is used. Nothing here
 * can crash slurmctld. */
#ifndef TOPOLANE_PROVEN_H
#define TOPOLANE_PROVEN_H

#include <stdbool.h>
#include <stddef.h>

#include "release.h"

/* The size with which Slurm allocated what is at this address; 0 if nothing of Slurm is there. */
size_t proven_size(const void *record);

/* Whether it is a record of this size. */
bool proven_record(const void *record, size_t size);

/* Whether it is NULL or a text, a bitmap or a list of Slurm. */
bool proven_text(const char *text);
bool proven_map(const bitstr_t *map);
bool proven_list(const list_t *list);

#endif
