#include "eager.h"

#include <mpi.h>

/* Below the eager limits of Open MPI and MPICH over TCP. UCX does not report its limit: in
 * benches/mpi/far_sites.py, broadcasts of 16 KiB were sent eagerly and of 32 KiB were not. */
enum { SAFE = 8 << 10, LEAST = 256, HEADER = 64 };

static int piece = SAFE;

/* Simulated programs have no tool interface. */
#ifdef MPI_T_ERR_INVALID_INDEX

/* Variables of Open MPI over TCP, and of MPICH without UCX. */
static const char *const LIMITS[] = {
    "btl_tcp_eager_limit",
    "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE",
};

/* The value in bytes; negative if this MPI has no such variable or it is not set. */
static long long value_of(const char *name)
{
    MPI_T_cvar_handle handle;
    MPI_Datatype type;
    MPI_T_enum values;
    union {
        int small;
        unsigned long long large;
        char room[4096];
    } value = {0};
    int index, count, size, verbosity, binding, scope, none = 0;
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_get_info(index, NULL, &none, &verbosity, &type, &values, NULL, &none, &binding, &scope) !=
            MPI_SUCCESS ||
        PMPI_Type_size(type, &size) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return -1;
    long long found = -1;
    if (count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS)
        found = size == (int)sizeof value.small ? value.small : (long long)value.large;
    MPI_T_cvar_handle_free(&handle);
    return found;
}

static void ask(void)
{
    /* MPICH: the first call decides the thread level, also for the program's threads. Open MPI: a higher
     * level would apply to the process, whose locks were made for the lower one. */
    int provided, level = MPI_THREAD_MULTIPLE;
#ifdef OMPI_MAJOR_VERSION
    if (PMPI_Query_thread(&level) != MPI_SUCCESS)
        return;
#endif
    if (MPI_T_init_thread(level, &provided) != MPI_SUCCESS)
        return;
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        long long limit = value_of(LIMITS[i]) - HEADER;
        if (limit >= LEAST && limit < piece)
            piece = (int)limit;
    }
#ifndef MPICH_VERSION /* MPICH 4.0.2 crashes if the program initialises the interface after it was finalised */
    MPI_T_finalize();
#endif
}

#else
static void ask(void) {}
#endif

void eager_start(void)
{
    ask();
    int mine = piece;
    PMPI_Allreduce(&mine, &piece, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
}

size_t eager_piece(void)
{
    return (size_t)piece;
}
