/* Clocks, the kernel, and who was on which core. */
#include "work.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

static const double CHUNK = 2e-5; /* seconds of work between two looks at the clock */
static const double XEN_CHUNK = 5e-4; /* the same where Xen is asked, which takes longer */
static const double BREAK = 2e-4; /* between two looks: the thread was off its core */
enum { TRIES = 8 };

static double rate;
static bool by_xen_clock, tracing;

static double clock_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double now(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

Line *note(Lines *lines, double start, double end, int number)
{
    if (lines->count == lines->room) {
        lines->room = lines->room ? 2 * lines->room : 1024;
        lines->lines = realloc(lines->lines, (size_t)lines->room * sizeof *lines->lines);
        if (lines->lines == NULL)
            abort();
    }
    lines->lines[lines->count] = (Line){.start = start, .end = end, .number = number};
    return &lines->lines[lines->count++];
}

/* Each round needs the one before it: it runs at the core's latency, whatever the memory does. */
static void kernel(uint64_t rounds)
{
    static _Thread_local volatile uint64_t kept;
    uint64_t x = kept;
    for (uint64_t round = 0; round < rounds; round++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    kept = x;
}

double measured_rate(void)
{
    const uint64_t rounds = 10 * 1000 * 1000;
    double best = 0;
    for (int try = 0; try < TRIES; try++) {
        const double start = clock_of(CLOCK_THREAD_CPUTIME_ID);
        kernel(rounds);
        const double found = (double)rounds / (clock_of(CLOCK_THREAD_CPUTIME_ID) - start);
        best = found > best ? found : best;
    }
    return best;
}

void set_rate(double of, bool with_xen_clock, bool with_trace)
{
    rate = of;
    by_xen_clock = with_xen_clock;
    tracing = with_trace;
}

void enter_core(Member *member)
{
    member->on_core_since = member->seen = now();
    member->core = sched_getcpu();
}

static void end_of_run(Member *member)
{
    if (member->seen > member->on_core_since)
        note(&member->trace, member->on_core_since, member->seen, member->core);
}

void leave_core(Member *member)
{
    if (!tracing)
        return;
    member->seen = now();
    end_of_run(member);
}

/* A look at the clock and the core: a break or another core ends the line and begins one. */
static void look(Member *member)
{
    if (!tracing)
        return;
    const double time = now();
    if (time - member->seen > BREAK || sched_getcpu() != member->core) {
        end_of_run(member);
        enter_core(member);
    }
    member->seen = time;
}

void keep_to_own_core(const Member *member)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET((size_t)member->me, &own);
    if (sched_setaffinity(0, sizeof own, &own) != 0)
        fprintf(stderr, "work: thread %d: there is no core %d\n", member->me, member->me);
}

/* What one iteration takes too long is the next one's: else each thread would have its own sum of these. */
static void compute_by_xen_clock(Member *member, double seconds)
{
    member->after = xen_look(member->me);
    member->due = (member->due > 0 ? member->due : member->after.ran) + seconds;
    while (member->after.ran < member->due) {
        kernel((uint64_t)(rate * XEN_CHUNK) + 1);
        member->before = member->after;
        member->after = xen_look(member->me);
        const double ahead = member->after.since - member->after.time;
        member->ahead = ahead > member->ahead ? ahead : member->ahead;
        look(member);
    }
}

void compute(Member *member, double seconds)
{
    if (by_xen_clock) {
        compute_by_xen_clock(member, seconds);
        return;
    }
    const uint64_t chunk = (uint64_t)(rate * CHUNK) + 1;
    uint64_t rounds = (uint64_t)(rate * seconds);
    while (rounds > 0) {
        const uint64_t part = rounds < chunk ? rounds : chunk;
        kernel(part);
        rounds -= part;
        look(member);
    }
}

void spin_on(Member *member)
{
    for (int pause = 0; pause < 8; pause++)
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        __asm__ volatile("" ::: "memory");
#endif
    look(member);
}

void sleep_until(Member *member, double time)
{
    const struct timespec at = {(time_t)time, (long)(1e9 * (time - (double)(time_t)time))};
    leave_core(member);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
    enter_core(member);
}

void nap(Member *member, double seconds)
{
    sleep_until(member, now() + seconds);
}
