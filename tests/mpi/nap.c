/* Lets ranks that wait sleep for a moment. MPICH through UCX spins, and so where there are more ranks than cores
   each message costs a time slice: preloaded, the same suite takes a tenth of the time. */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

#define PATIENCE 50 /* empty looks before the first sleep */

#ifndef MOMENT
#define MOMENT 20000 /* nanoseconds */
#endif
static const struct timespec moment = {0, MOMENT};

unsigned ucp_worker_progress(void *worker);
int sched_yield(void);

unsigned ucp_worker_progress(void *worker)
{
    static _Thread_local unsigned (*real)(void *);
    static _Thread_local int empty;
    if (real == NULL) {
        /* Not RTLD_NEXT: who loads MPI as a module has UCX in no global scope. */
        void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        *(void **)&real = dlsym(ucp, "ucp_worker_progress");
    }
    unsigned done = real(worker);
    empty = done ? 0 : empty + 1;
    if (empty > PATIENCE)
        nanosleep(&moment, NULL);
    return done;
}

/* What Open MPI does with mpi_yield_when_idle. */
int sched_yield(void)
{
    return nanosleep(&moment, NULL);
}
