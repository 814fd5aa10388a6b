#define _GNU_SOURCE
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
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

void report_time(uint64_t nanoseconds)
{
    int power = 0;
    while (power < REPORT_POWERS - 1 && nanoseconds >> (power + 8))
        power++;
    counters.under[power]++;
    counters.nanoseconds += nanoseconds;
    counters.longest = nanoseconds > counters.longest ? nanoseconds : counters.longest;
}

void report_write(const char *path)
{
    static time_t last;
    time_t now = time(NULL);
    if (!path || now == last)
        return;
    last = now;
    char draft[4096];
    if (snprintf(draft, sizeof draft, "%s.new", path) >= (int)sizeof draft)
        return;
    FILE *to = fopen(draft, "we");
    if (!to)
        return;
#define COUNTER(name, meaning) fprintf(to, #name " %" PRIu64 "\n", counters.name);
    REPORT_COUNTERS(COUNTER)
#undef COUNTER
    fprintf(to, "nanoseconds %" PRIu64 "\nlongest_nanoseconds %" PRIu64 "\n", counters.nanoseconds, counters.longest);
    for (int power = 0; power < REPORT_POWERS; power++)
        fprintf(to, "under_%" PRIu64 "_nanoseconds %" PRIu64 "\n", UINT64_C(1) << (power + 8), counters.under[power]);
    if (fclose(to) || rename(draft, path))
        return;
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
