/* Communicators from the wrappers' view. */
#ifndef TOPOLANE_COMMUNICATOR_H
#define TOPOLANE_COMMUNICATOR_H

#include "topolane_mpi.h"

/* Call this after MPI_Init. Returns false if facts about communicators cannot be kept. */
bool communicator_open(void);
/* Keep the facts about a communicator beyond its end until they are released. */
void communicator_hold(Communicator *communicator);
void communicator_release(Communicator *communicator);
/* Returns the group's ranks as world ranks (-1: outside MPI_COMM_WORLD) in memory that the caller frees;
 * NULL on failure. */
int *world_ranks(MPI_Group group, int size);

#endif
