/* The thread that reports: it never calls MPI, and the program never waits for it but at the end. */
#ifndef TOPOLANE_REPORT_H
#define TOPOLANE_REPORT_H

#include "frames.h"

/* Starts the thread, if the environment names a receiver. `mpi`: what the library calls itself. */
void report_begin(int rank, int ranks, const char *mpi);
/* Sends what is left, for a second at most. */
void report_end(void);

/* HELLO of this process; NULL: a receiver could not distinguish its program from others (identity.c). */
Frame *hello_frame(int rank, int ranks, const char *mpi);

#endif
