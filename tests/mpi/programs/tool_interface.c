/* Uses MPI's tool interface (MPI_T) before MPI_Init and after it: each call succeeds, and a variable stays the same.
 *
 *     tool_interface WHEN    initialises it before MPI_Init (0), after it (1), or at both places (2)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int wrong;

static void check(int code, const char *what)
{
    if (code != MPI_SUCCESS) {
        wrong++;
        fprintf(stderr, "%s: code %d\n", what, code);
    }
}

#define CHECK(call) check(call, #call)

static void begin(void)
{
    int provided;
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
}

/* The first variable that is an integer of the process, and a handle of it. */
static int found = -1;

static int value(void)
{
    int count, verbosity, binding, scope, length, help, elements, read = -1;
    char name[256], description[256];
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_cvar_handle handle;
    CHECK(MPI_T_cvar_get_num(&count));
    for (int at = 0; at < count && found < 0; at++) {
        length = help = 256;
        CHECK(MPI_T_cvar_get_info(at, name, &length, &verbosity, &type, &values, description, &help, &binding, &scope));
        if (type == MPI_INT && binding == MPI_T_BIND_NO_OBJECT)
            found = at;
    }
    CHECK(MPI_T_cvar_handle_alloc(found, NULL, &handle, &elements));
    CHECK(MPI_T_cvar_read(handle, &read));
    CHECK(MPI_T_cvar_handle_free(&handle));
    return read;
}

int main(int count, char **arguments)
{
    int when = atoi(arguments[1]), first, sum, one = 1, ranks;
    if (when != 1) {
        begin();
        value();
    }
    MPI_Init(&count, &arguments);
    if (when != 0)
        begin();
    first = value();
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int time = 0; time < 6; time++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != ranks || value() != first;
    }
    if (when == 2)
        CHECK(MPI_T_finalize());
    CHECK(MPI_T_finalize()); /* not after MPI_Finalize, where Open MPI 4.1.4 crashes by itself */
    MPI_Finalize();
    return wrong != 0;
}
