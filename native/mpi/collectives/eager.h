/* How much the MPI sends to another host without asking the receiver first. */
#ifndef TOPOLANE_MPI_EAGER_H
#define TOPOLANE_MPI_EAGER_H

#include <stddef.h>

/* Asks the MPI. Collective over MPI_COMM_WORLD, once. */
void eager_start(void);

/* Bytes of a piece that is sent so; the same on all ranks. */
size_t eager_piece(void);

#endif
