/* A separate stack for the wrappers of a thread (calls/on_own_stack.h). */
#ifndef TOPOLANE_STACK_H
#define TOPOLANE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the program called. It is stored at the top of the separate stack, which is in use while `depth`
 * is set. */
typedef struct {
    uint64_t depth, back, registers[6];    /* position of the program's return address, that address, and registers that a
                                            * call must keep */
    uint64_t wrapper;                      /* depth of the wrapper while MPI runs */
    uint64_t bytes;                        /* size of the whole stack */
} StackTop;

/* The stack of this thread; NULL if there is none. */
extern _Thread_local StackTop *stack_top __attribute__((tls_model("initial-exec")));
void stack_make(void);
/* Whether two-level collectives may call the program's operations on it. Set before the first stack is
 * made. */
extern bool stack_of_operations;
/* Whether an address is on the stack with which this thread began, not on that of a user-level thread. */
bool is_on_threads_stack(uintptr_t address);

/* Gives this thread a separate stack, unless it has one. */
static inline void stack_wanted(void)
{
    if (__builtin_expect(!stack_top, 0))
        stack_make();
}

#endif
