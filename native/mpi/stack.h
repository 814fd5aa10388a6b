/* A stack for the wrappers of a thread (calls/on_own_stack.h). */
#ifndef TOPOLANE_STACK_H
#define TOPOLANE_STACK_H

#include <stddef.h>
#include <stdint.h>

/* Where the program was. It stands at the top of our stack, which is in use while `depth` is set. */
typedef struct {
    uint64_t depth, back, registers[6];    /* where its return address stands, that address, what a call must keep */
    uint64_t wrapper;                      /* depth of the wrapper while MPI runs */
    uint64_t bytes;                        /* of the whole stack */
} StackTop;

/* Of this thread; NULL: none. */
extern _Thread_local StackTop *stack_top __attribute__((tls_model("initial-exec")));
void stack_make(void);

/* Gives this thread a stack, unless it has one. */
static inline void stack_wanted(void)
{
    if (__builtin_expect(!stack_top, 0))
        stack_make();
}

#endif
