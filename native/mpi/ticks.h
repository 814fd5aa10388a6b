/* A clock that takes only a few nanoseconds to read. Its unit is not known in advance: report/ measures
 * it. */
#ifndef TOPOLANE_TICKS_H
#define TOPOLANE_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t ticks(void)
{
#if defined __x86_64__
    return __builtin_ia32_rdtsc();
#elif defined __aarch64__
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    return nanoseconds(CLOCK_MONOTONIC);
#endif
}

/* The ticks since `began`. Clocks of two cores may differ slightly, and a thread may move to another core,
 * so a negative time counts as 0. */
static inline uint64_t ticks_since(uint64_t began)
{
    uint64_t now = ticks();
    return now > began ? now - began : 0;
}

#endif
