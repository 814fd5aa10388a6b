/* Allocates the stack for a thread's wrappers. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "stack.h"

/* Two-level collectives call the program's operations on this stack, so then it is as large as the
 * thread's own stack, within bounds that suit most programs; an unlimited stack rarely needs more.
 * Otherwise the least size is enough. Memory is used only where it is touched. */
static const size_t LEAST = (size_t)8 << 20, MOST = (size_t)256 << 20;
enum { GUARD = 65536 };    /* at least a page of any processor */
bool stack_of_operations;

_Thread_local StackTop *stack_top __attribute__((tls_model("initial-exec")));
static _Thread_local bool refused __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;    /* set once, before any thread reads it */

static void release(void *top)
{
    size_t bytes = ((StackTop *)top)->bytes;
    stack_top = NULL;
    munmap((char *)top + sizeof(StackTop) - bytes, bytes);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, release) == 0;
}

typedef struct {
    uintptr_t begin;
    size_t bytes;
    bool known;
} Extent;

/* The stack that the system gave this thread; of 0 bytes if the system does not say. */
static const Extent *threads_own(void)
{
    static _Thread_local Extent own __attribute__((tls_model("initial-exec")));
    pthread_attr_t attributes;
    void *begin;
    if (!own.known && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &begin, &own.bytes) == 0)
            own.begin = (uintptr_t)begin;
        else
            own.bytes = 0;
        /* An unlimited stack extends down to the next mapping at first, and other stacks may later be
         * mapped inside it. */
        if (own.bytes > MOST) {
            own.begin += own.bytes - MOST;
            own.bytes = MOST;
        }
        pthread_attr_destroy(&attributes);
    }
    own.known = true;
    return &own;
}

bool is_on_threads_stack(uintptr_t address)
{
    const Extent *own = threads_own();
    return address - own->begin < own->bytes;
}

static size_t wanted_bytes(void)
{
    size_t bytes = stack_of_operations ? threads_own()->bytes : LEAST;
    bytes = bytes < LEAST ? LEAST : bytes > MOST ? MOST : bytes;
    return bytes / GUARD * GUARD;
}

static char *mapped(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
}

void stack_make(void)
{
    pthread_once(&once, make_key);
    if (!has_key || refused || stack_top)
        return;
    size_t bytes = wanted_bytes();
    char *stack = mapped(bytes);
    if (stack == MAP_FAILED)
        stack = mapped(bytes = LEAST);
    refused = true;
    if (stack == MAP_FAILED)
        return;
    StackTop *top = (StackTop *)(stack + bytes - sizeof(StackTop));
    if (mprotect(stack, GUARD, PROT_NONE) != 0 || pthread_setspecific(key, top) != 0) {
        munmap(stack, bytes);
        return;
    }
    refused = false;
    top->bytes = bytes;
    stack_top = top;
}
