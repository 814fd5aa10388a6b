/* Only the frames of a thread tell whether it is still in a call: neither longjmp nor what lies on the stack says. */
#include "nested.h"

#include <unwind.h>

#include "counts.h"

/* Where this library lies. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

typedef struct {
    bool outside;    /* a frame that is not the library's was seen */
    bool again;      /* and then one of the library's */
    bool all;        /* the thread's first frame was seen */
} Seen;

static _Unwind_Reason_Code see(struct _Unwind_Context *frame, void *seen_frames)
{
    Seen *seen = seen_frames;
    uintptr_t at = (uintptr_t)_Unwind_GetIP(frame);
    bool ours = at >= (uintptr_t)__ehdr_start && at < (uintptr_t)_end;
    seen->again = ours && seen->outside;
    seen->outside |= !ours;
    seen->all = at == 0;
    return seen->again ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

/* Where the program made the call that the thread is in. */
static uintptr_t called_at(void)
{
    bool on_ours = stack_top && (uintptr_t)stack_top - entered_at < stack_top->bytes;
    return on_ours ? stack_top->depth : entered_at;
}

/* Only if both calls are on the thread's own stack: on that of a user-level thread (ucontext, fibers), which is switched
 * within a call, there are no frames of the other one. Where frames cannot be followed to the first one, the call counts as
 * nested, as it most likely is, and so do the others until that call ends. */
bool is_nested(void)
{
    Seen seen = {0};
    if (inside == UNDECIDED || !is_on_threads_stack((uintptr_t)&seen) || !is_on_threads_stack(called_at()))
        return true;
    _Unwind_Backtrace(see, &seen);
    if (seen.again)
        return true;
    if (!seen.all) {
        inside = UNDECIDED;
        return true;
    }
    inside = OUTSIDE;
    if (stack_top)
        stack_top->depth = 0;
    return false;
}
