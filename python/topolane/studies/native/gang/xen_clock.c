/* How long this virtual processor has run, as Xen counts it. Xen's public headers vcpu.h and arch-x86/xen.h have the
 * numbers; Linux' include/uapi/xen/privcmd.h has the call. */
#include "work.h"

#include <fcntl.h>
#include <sys/ioctl.h>

enum { VCPU_OP = 24, GET_RUNSTATE = 4, RUNNING = 0 };

typedef struct {
    uint64_t operation, arguments[5];
} Hypercall;

typedef struct {
    int32_t state;
    uint64_t since, nanoseconds[4];
} Runstate;

static int calls = -1;

double xen_clock(int processor)
{
    Runstate found = {0};
    Hypercall call = {VCPU_OP, {GET_RUNSTATE, (uint64_t)processor, (uint64_t)(uintptr_t)&found}};
    if (ioctl(calls, _IOC(_IOC_NONE, 'P', 0, sizeof call), &call) != 0)
        return -1;
    return 1e-9 * (double)found.nanoseconds[RUNNING];
}

bool open_xen_clock(int processors)
{
    calls = open("/dev/xen/privcmd", O_RDWR | O_CLOEXEC);
    return calls >= 0 && xen_clock(processors - 1) >= 0;
}
