/* Initialisation and finalisation of MPI. */
#include <string.h>

#include "collectives/levels.h"
#include "communicator.h"
#include "counts.h"
#include "report/report.h"
#include "windows.h"

/* Whether another program spawned this process. Then it has a world of its own, which is not watched. */
static bool is_spawned(void)
{
    MPI_Comm parent = MPI_COMM_NULL;
    return PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL;
}

static void begin(int level)
{
    int rank, ranks, length = 0;
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    if (is_spawned())
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    many_threads = level == MPI_THREAD_MULTIPLE;
    PMPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, "\n,")] = 0;
    if (!counts_open(rank, ranks) || !communicator_open() || !windows_open())
        return;
    two_level_start();
    stack_of_operations = two_level_settings.mode != NEVER;
    report_begin(rank, ranks, mpi);
    stack_wanted();
    watching = true;
}

EXPORT int MPI_Init(int *count, char ***arguments)
{
    int result = PMPI_Init(count, arguments), level = MPI_THREAD_SINGLE;
    if (result == MPI_SUCCESS) {
        PMPI_Query_thread(&level);
        begin(level);
    }
    return result;
}

EXPORT int MPI_Init_thread(int *count, char ***arguments, int required, int *provided)
{
    int result = PMPI_Init_thread(count, arguments, required, provided);
    if (result == MPI_SUCCESS)
        begin(*provided);
    return result;
}

EXPORT int MPI_Finalize(void)
{
    if (watching) {
        watching = false;
        report_end();
    }
    return PMPI_Finalize();
}
