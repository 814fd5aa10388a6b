#define _GNU_SOURCE
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "release.h"

Counters counters;

enum { QUIET_SECONDS = 60 };

void say(Say what, const char *format, ...)
{
    static time_t last[SAY_COUNT];
    static uint64_t unsaid[SAY_COUNT];
    time_t now = time(NULL);
    if (last[what] && now < last[what] + QUIET_SECONDS && now >= last[what]) {
        unsaid[what]++;
        return;
    }
    char text[1024];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    if (unsaid[what])
        error("topolane: %s (and %" PRIu64 " times more since the last such line)", text, unsaid[what]);
    else
        error("topolane: %s", text);
    last[what] = now;
    unsaid[what] = 0;
}

/* The class of a duration: see REPORT_CLASSES. */
static int class_of(uint64_t nanoseconds)
{
    if (!(nanoseconds >> REPORT_LEAST))
        return 0;
    int power = 63 - __builtin_clzll(nanoseconds);
    int class = 1 + 4 * (power - REPORT_LEAST) + (int)(nanoseconds >> (power - 2) & 3);
    return class < REPORT_CLASSES ? class : REPORT_CLASSES - 1;
}

/* The upper limit of the durations in a class. */
static uint64_t end_of(int class)
{
    return class ? (UINT64_C(5) + (uint64_t)((class - 1) % 4)) << (REPORT_LEAST - 2 + (class - 1) / 4)
                 : UINT64_C(1) << REPORT_LEAST;
}

void report_end(End end)
{
    _Static_assert(RECENT * RECENT_BITS == 64 && END_KINDS <= 1 << RECENT_BITS, "they fit into one number");
    counters.recent = counters.recent << RECENT_BITS | (uint64_t)end;
}

/* Prints the latest calls: their number, the number of each end, and for how many in a row the engine could not answer. */
static void print_recent(FILE *to, uint64_t recent)
{
    static const char *const names[END_KINDS] = {"calls", "decided", "inactive", "failed", "slow", "unknown", "oversubscribed"};
    unsigned counts[END_KINDS] = {0}, in_a_row = 0;
    bool goes_on = true;
    for (; recent; recent >>= RECENT_BITS) {
        End end = recent & ((1 << RECENT_BITS) - 1);
        counts[END_NONE]++;
        if (end < END_KINDS)
            counts[end]++;
        goes_on = goes_on && (end == END_INACTIVE || end == END_FAILED || end == END_SLOW);
        in_a_row += goes_on;
    }
    for (int end = 0; end < END_KINDS; end++)
        fprintf(to, "recent_%s %u\n", names[end], counts[end]);
    fprintf(to, "recent_without_answer %u\n", in_a_row);
}

void report_time(uint64_t nanoseconds)
{
    counters.under[class_of(nanoseconds)]++;
    counters.nanoseconds += nanoseconds;
    counters.longest = nanoseconds > counters.longest ? nanoseconds : counters.longest;
}

void counters_print(FILE *to, const Counters *counted)
{
#define COUNTER(name, meaning) fprintf(to, #name " %" PRIu64 "\n", counted->name);
    REPORT_COUNTERS(COUNTER)
#undef COUNTER
    fprintf(to, "nanoseconds %" PRIu64 "\nlongest_nanoseconds %" PRIu64 "\n", counted->nanoseconds, counted->longest);
    print_recent(to, counted->recent);
    for (int class = 0; class < REPORT_CLASSES; class++)
        fprintf(to, "under_%" PRIu64 "_nanoseconds %" PRIu64 "\n", end_of(class), counted->under[class]);
}

static uint64_t time_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t steady_time(void)
{
    return time_of(CLOCK_MONOTONIC);
}

uint64_t thread_time(void)
{
    return time_of(CLOCK_THREAD_CPUTIME_ID);
}
