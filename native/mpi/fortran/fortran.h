/* Open MPI's Fortran bindings call PMPI, so its Fortran calls are wrapped, too: handles and constants are converted
 * as Open MPI does, and the C call of ours does the rest. `mpif.h` and `use mpi` call mpi_send_, `use mpi_f08` calls
 * ompi_send_f. MPICH's bindings call the C functions, which is seen without this.
 */
#ifndef TOPOLANE_FORTRAN_H
#define TOPOLANE_FORTRAN_H

#include <mpi.h>
#include <stdlib.h>

#include "counts.h"

#if defined OMPI_MAJOR_VERSION
#define FORTRAN_WRAPPERS 1

typedef MPI_Fint *Int;
_Static_assert(sizeof(MPI_Fint) == sizeof(int), "arrays of INTEGER are passed on as they are");

/* Constants that Fortran knows by their address; missing where there is no Fortran. */
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

/* A subroutine; `code` is the last argument. */
#define FORTRAN(name, PARAMETERS, call)                                             \
    EXPORT void ompi_##name##_f PARAMETERS;                                         \
    EXPORT void mpi_##name##_ PARAMETERS __attribute__((alias("ompi_" #name "_f"))); \
    void ompi_##name##_f PARAMETERS                                                 \
    {                                                                               \
        int result = call;                                                          \
        if (code)                                                                   \
            *code = result;                                                         \
    }

/* The same with a request that the call makes. */
#define FORTRAN_REQUEST(name, PARAMETERS, call)    \
    FORTRAN(name, PARAMETERS, ({                   \
                MPI_Request made;                  \
                int done = call;                   \
                if (done == MPI_SUCCESS)           \
                    *request = PMPI_Request_c2f(made); \
                done;                              \
            }))

/* And with a status. */
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
