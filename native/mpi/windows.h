/* Windows of one-sided communication. */
#ifndef TOPOLANE_WINDOWS_H
#define TOPOLANE_WINDOWS_H

#include "topolane_mpi.h"

bool windows_open(void);
/* The world rank of a target in a window; -1 if there is none, or outside MPI_COMM_WORLD. Callable from
 * any thread. */
int window_rank(MPI_Win window, int target);

#endif
