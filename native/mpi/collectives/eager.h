/* The size up to which the MPI sends to another host without asking the receiver first (eagerly). */
#ifndef TOPOLANE_MPI_EAGER_H
#define TOPOLANE_MPI_EAGER_H

#include <stddef.h>

/* Reads the limit from the MPI. Collective over MPI_COMM_WORLD; call it once. */
void eager_start(void);

/* Bytes of a piece that is sent eagerly; the same on all ranks. */
size_t eager_piece(void);

#endif
