/* The features of this MPI. */
#ifndef TOPOLANE_ABILITIES_H
#define TOPOLANE_ABILITIES_H

#include <mpi.h>

/* Open MPI 5 has parts of MPI-4 although it reports MPI-3.1. */
#if defined OMPI_MAJOR_VERSION
#define MPI_4 (MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5)
#else
#define MPI_4 (MPI_VERSION >= 4)
#endif
#define LARGE_COUNTS (MPI_VERSION >= 4)
#define NONBLOCKING_SENDRECV MPI_4
#define PERSISTENT_COLLECTIVES MPI_4
#define PARTITIONED MPI_4

#endif
