/* The Slurm of the process into which a library of ours was loaded. Uses no header of Slurm, so one library serves every
 * release. */
#ifndef TOPOLANE_INSTALLED_H
#define TOPOLANE_INSTALLED_H

#include <limits.h>
#include <stdint.h>

/* The directory of a loaded library, without a slash at its end, from an address in it; empty if it is not known. */
void folder_of(const void *address, char folder[PATH_MAX]);

/* The directory of Slurm's own plugins: that of its library libslurmfull, which is installed there. Empty if this process
 * has no such library. */
void installed_folder(char folder[PATH_MAX]);

/* The number of release, such as 0x1a0505 for 26.05.5, in a loaded plugin of Slurm; 0 if it has none. */
uint32_t release_in(void *plugin);

#endif
