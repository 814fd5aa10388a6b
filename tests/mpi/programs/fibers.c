/* A user-level thread (ucontext) that MPI switches to within a watched call, and that calls MPI itself.
 *
 *     fibers    a generalised request's query function, which MPI calls in MPI_Wait, switches to the fiber and back
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

enum { BYTES = 256 << 10, CALLS = 5 };

static ucontext_t waiting, fiber;
static int wrong, calls;

/* The fiber's first frame, as its unwind table says. Each call has more arguments than registers hold. */
static void run(void)
{
#if defined __x86_64__
    __asm__ volatile(".cfi_undefined rip");
#endif
    for (;;) {
        int given = ++calls, taken = 0;
        MPI_Sendrecv(&given, 1, MPI_INT, 0, 1, &taken, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        wrong += taken != given;
        if (given % CALLS == 0)
            swapcontext(&fiber, &waiting);
    }
}

static int query(void *state, MPI_Status *status)
{
    (void)state;
    swapcontext(&waiting, &fiber);
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int finish(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

int main(int count, char **arguments)
{
    enum { ROUNDS = 3 };
    alarm(20);
    MPI_Init(&count, &arguments);
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = malloc(BYTES);
    fiber.uc_stack.ss_size = BYTES;
    makecontext(&fiber, run, 0);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Grequest_start(query, finish, cancel, NULL, &request);
        MPI_Grequest_complete(request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    wrong += calls != ROUNDS * CALLS;
    MPI_Finalize();
    return wrong != 0;
}
