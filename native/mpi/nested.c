/* Finds out from a thread's stack frames whether it is still in a call. Neither longjmp nor the content of
 * the stack would show this. */
#include "nested.h"

#include <unwind.h>

#include "counts.h"

/* The addresses of this library's code. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

typedef struct {
    bool outside;    /* a frame outside the library was seen */
    bool again;      /* after that, another frame of the library was seen */
    bool all;        /* the thread's first frame was reached */
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

/* The stack depth at which the program made the call that the thread is in. */
static uintptr_t called_at(void)
{
    bool on_ours = stack_top && (uintptr_t)stack_top - entered_at < stack_top->bytes;
    return on_ours ? stack_top->depth : entered_at;
}

/* Checks only if both calls are on the thread's own stack: a user-level thread (ucontext, fibers) may be
 * switched within a call, and its stack has no frames of the other call. If frames cannot be followed to
 * the first one, the call counts as nested, which is most likely, and so do further ones until that call
 * ends. */
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
