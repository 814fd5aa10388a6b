/* The reporting thread. It never calls MPI, and the program waits for it only at the end. */
#ifndef TOPOLANE_REPORT_H
#define TOPOLANE_REPORT_H

#include "frames.h"

/* Starts the thread if the environment names a receiver. `mpi`: the MPI's name for itself. */
void report_begin(int rank, int ranks, const char *mpi);
/* Sends what is left, for at most a second. */
void report_end(void);

/* The HELLO of this process; NULL if a receiver could not distinguish its program from others
 * (identity.c). */
Frame *hello_frame(int rank, int ranks, const char *mpi);

#endif
