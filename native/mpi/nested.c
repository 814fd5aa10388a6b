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

/* Where frames cannot be followed to the first one, the call counts as nested, as it most likely is. */
bool is_nested(void)
{
    Seen seen = {0};
    _Unwind_Backtrace(see, &seen);
    if (seen.again || !seen.all)
        return true;
    inside = false;
    if (stack_top)
        stack_top->depth = 0;
    return false;
}
