/* A program whose frames cannot be followed (it has no unwind tables) leaves MPI by longjmp: how often the calls after it
 * look at the frames. Compiled with -fno-asynchronous-unwind-tables -rdynamic.
 *
 *     no_frames CALLS    prints "looked N"
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static jmp_buf before;
static int looked;

/* The library finds this one. */
int _Unwind_Backtrace(void *see, void *seen)
{
    int (*real)(void *, void *) = (int (*)(void *, void *))dlsym(RTLD_NEXT, "_Unwind_Backtrace");
    looked++;
    return real(see, seen);
}

static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    longjmp(before, *code);
}

int main(int count, char **arguments)
{
    int out[2] = {1, 2}, in;
    MPI_Errhandler handler;
    MPI_Request sent;
    alarm(20);
    MPI_Init(&count, &arguments);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Isend(out, 2, MPI_INT, 0, 5, MPI_COMM_SELF, &sent);
    MPI_Request_free(&sent);
    if (setjmp(before) == 0)
        MPI_Recv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE); /* has room for less than comes */
    looked = 0;
    for (int call = 0; call < atoi(arguments[1]); call++)
        MPI_Barrier(MPI_COMM_SELF);
    printf("looked %d\n", looked);
    MPI_Finalize();
    return 0;
}
