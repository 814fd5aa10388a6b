/* Whether slurmctld's records are laid out as in the headers with which the plugin was compiled. Slurm loads a plugin that
 * has its own number of release, but a package may differ from the source of that number by patches. */
#ifndef TOPOLANE_LAYOUT_H
#define TOPOLANE_LAYOUT_H

#include <stdbool.h>
#include <time.h>

typedef enum { LAYOUT_UNKNOWN, LAYOUT_FITS, LAYOUT_DIFFERS } Layout;

/* Compares records that Slurm makes for this. */
Layout layout_of_new(void);

/* Compares these and records of slurmctld, until a job that waits and one that runs were seen. While the layout is unknown, no
 * field of a job may be used. Call it only where Slurm asks for nodes, or with
 * its locks: while slurmctld starts, its jobs are not whole. */
Layout layout_compared(void);

/* When slurmctld started, as it says to commands; 0 if that is not known. */
time_t layout_boot_time(void);

#endif
