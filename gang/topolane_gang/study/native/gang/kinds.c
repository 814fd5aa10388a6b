/* What the kinds do. */
#include "work.h"

#include <math.h>
#include <signal.h>

static const double TOGETHER = 1e-2, ASLEEP = 5e-2;
enum { TRIES = 50 };

static volatile sig_atomic_t must_end;

static void end_soon(int number)
{
    (void)number;
    must_end = 1;
}

/* splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014. */
static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A number from 0 up to, without, 1: the same for the same seed, iteration and place. */
static double drawn(const Options *options, uint64_t iteration, uint64_t place)
{
    const uint64_t seed = mixed((uint64_t)options->seed);
    return (double)(mixed(mixed(seed ^ iteration) ^ place) >> 11) * 0x1p-53;
}

/* Log-normal with mean `fine`, whatever the spread, so that the spread changes no sum of work. */
static double fine_seconds(const Options *options, uint64_t iteration, int task)
{
    const double one = 1 - drawn(options, iteration, 2 * (uint64_t)task);
    const double other = drawn(options, iteration, 2 * (uint64_t)task + 1);
    const double normal = sqrt(-2 * log(one)) * cos(2 * acos(-1) * other);
    const double sigma = options->spread;
    return options->fine * exp(sigma * normal - sigma * sigma / 2);
}

static void independent(Member *member, const Options *options, uint64_t iteration)
{
    (void)iteration;
    compute(member, options->iteration);
}

static void barrier(Member *member, const Options *options, uint64_t iteration)
{
    const double aside = 2 * drawn(options, iteration, (uint64_t)member->me) - 1;
    compute(member, options->interval * (1 + options->imbalance * aside));
}

/* The tasks done. */
static int step(Member *member, const Options *options, uint64_t iteration)
{
    int done = 0;
    if (member->me == 0) {
        member->due = 0;
        compute(member, options->coarse);
        put_tasks();
    }
    meet(member, false, false);
    for (int task = take_task(); task < (int)options->tasks; task = take_task()) {
        member->due = 0;
        compute(member, fine_seconds(options, iteration, task));
        done++;
    }
    return done;
}

/* All sleep, and begin when they wake at the same time, or they do so again: a processor that has waited for its turn would
 * be behind in all iterations. Time in the second meeting is work already, so how all leave that one does not matter. */
static double begin_by_xen_clock(Member *member)
{
    int tries = 0;
    double begin;
    do {
        meet(member, false, true);
        begin = met_at() + ASLEEP;
        sleep_until(member, begin);
        member->after = xen_look(member->me);
    } while (meet(member, member->after.time - begin > TOGETHER, true) && ++tries < TRIES);
    member->due = member->after.ran;
    return member->after.time;
}

void work(Member *member, const Options *options)
{
    signal(SIGTERM, end_soon);
    if (options->pin)
        keep_to_own_core(member);
    enter_core(member);
    meet(member, false, false);
    double start = options->xen_clock ? begin_by_xen_clock(member) : now();
    const double last = start + (options->seconds > 0 ? options->seconds : INFINITY);
    bool over = false;
    for (uint64_t iteration = 0; !over; iteration++) {
        int done = 0;
        if (options->kind == COEVP)
            done = step(member, options, iteration);
        else
            (options->kind == BARRIER ? barrier : independent)(member, options, iteration);
        const bool enough = options->iterations > 0 && (double)(iteration + 1) >= options->iterations;
        over = enough || must_end || now() >= last;
        if (options->kind != INDEPENDENT)
            over = meet(member, over, options->spin);
        if (options->wait > 0 && options->kind == COEVP)
            nap(member, options->wait);
        const double end = now();
        Line *line = note(&member->log, start, end, done);
        line->before = member->before;
        line->after = member->after;
        line->due = member->due;
        line->ahead = member->ahead;
        start = end;
    }
    leave_core(member);
}
