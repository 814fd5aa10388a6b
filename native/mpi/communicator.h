/* Communicators as the wrappers see them. */
#ifndef TOPOLANE_COMMUNICATOR_H
#define TOPOLANE_COMMUNICATOR_H

#include "topolane_mpi.h"

/* After MPI_Init. False: nothing can be known of communicators. */
bool communicator_open(void);
/* Keeps what is known of a communicator beyond its end, until it is released. */
void communicator_hold(Communicator *communicator);
void communicator_release(Communicator *communicator);
/* The group it is freed of becomes world ranks; -1: outside MPI_COMM_WORLD. NULL: they cannot be had. */
int *world_ranks(MPI_Group group, int size);

#endif
