/* The stack of a thread's wrappers. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "stack.h"

enum { GUARD = 65536 };    /* a page of any processor */

_Thread_local StackTop *stack_top __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;    /* and there was memory so far */

static void release(void *top)
{
    stack_top = NULL;
    munmap((char *)top + sizeof(StackTop) - STACK_BYTES, STACK_BYTES);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, release) == 0;
}

void stack_make(void)
{
    pthread_once(&once, make_key);
    if (!has_key || stack_top)
        return;
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        has_key = false;
        return;
    }
    StackTop *top = (StackTop *)(stack + STACK_BYTES - sizeof(StackTop));
    if (mprotect(stack, GUARD, PROT_NONE) != 0 || pthread_setspecific(key, top) != 0)
        munmap(stack, STACK_BYTES);
    else
        stack_top = top;
}
