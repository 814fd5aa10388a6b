/* Open MPI's Fortran bindings call PMPI, so its Fortran calls are wrapped too. Handles and constants are
 * converted as Open MPI does, and then the library's wrapper of the C call does the rest. `mpif.h` and
 * `use mpi` call mpi_send_, `use mpi_f08` calls ompi_send_f. MPICH's bindings call the C functions, which
 * are watched anyway. */
#ifndef TOPOLANE_FORTRAN_H
#define TOPOLANE_FORTRAN_H

#include <mpi.h>
#include <stdlib.h>

#include "counts.h"

#if defined OMPI_MAJOR_VERSION
#define FORTRAN_WRAPPERS 1

typedef MPI_Fint *Int;
_Static_assert(sizeof(MPI_Fint) == sizeof(int), "arrays of INTEGER are passed on as they are");

/* Constants that Fortran identifies by their address; missing without Fortran. */
extern char mpi_fortran_bottom_ __attribute__((weak));
extern char mpi_fortran_in_place_ __attribute__((weak));
extern char mpi_fortran_status_ignore_ __attribute__((weak));
extern char mpi_fortran_statuses_ignore_ __attribute__((weak));

static inline void *buffer_of(char *buffer)
{
    if (buffer && buffer == &mpi_fortran_bottom_)
        return MPI_BOTTOM;
    return buffer && buffer == &mpi_fortran_in_place_ ? MPI_IN_PLACE : buffer;
}

#define COMM(comm) PMPI_Comm_f2c(*(comm))
#define TYPE(type) PMPI_Type_f2c(*(type))
#define OP(op) PMPI_Op_f2c(*(op))
#define WINDOW(window) PMPI_Win_f2c(*(window))
#define BUFFER(buffer) buffer_of(buffer)

/* Defines a subroutine, whose last argument is `code`. */
#define FORTRAN(name, PARAMETERS, call)                                             \
    EXPORT void ompi_##name##_f PARAMETERS;                                         \
    EXPORT void mpi_##name##_ PARAMETERS __attribute__((alias("ompi_" #name "_f"))); \
    void ompi_##name##_f PARAMETERS                                                 \
    {                                                                               \
        int result = call;                                                          \
        if (code)                                                                   \
            *code = result;                                                         \
    }

/* Defines a subroutine whose call makes a request. */
#define FORTRAN_REQUEST(name, PARAMETERS, call)    \
    FORTRAN(name, PARAMETERS, ({                   \
                MPI_Request made;                  \
                int done = call;                   \
                if (done == MPI_SUCCESS)           \
                    *request = PMPI_Request_c2f(made); \
                done;                              \
            }))

/* Passes a status to the program. */
static inline void give_status(Int status, const MPI_Status *known)
{
    if ((char *)status != &mpi_fortran_status_ignore_)
        PMPI_Status_c2f(known, status);
}

#define FORTRAN_STATUS(name, PARAMETERS, call)     \
    FORTRAN(name, PARAMETERS, ({                   \
                MPI_Status known;                  \
                int done = call;                   \
                if (done == MPI_SUCCESS)           \
                    give_status(status, &known);   \
                done;                              \
            }))

#endif
#endif
