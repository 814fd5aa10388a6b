/* Workloads for gangs: threads, or MPI ranks where it is compiled with -DWITH_MPI.
 *
 *     work independent --threads N [--iteration S]
 *     work barrier     --threads N [--interval S] [--spin] [--imbalance SHARE]
 *     work coevp       --threads N [--coarse S] [--tasks N] [--fine S] [--spread SIGMA] [--wait S]
 *          and (--seconds S | --iterations N) [--seed N] [--rate R] [--pin] [--xen-clock] [--log FILE] [--trace FILE]
 *     work rate
 *
 * Seconds of work are seconds of a thread's CPU: a fixed number of rounds of a kernel, R a second as `work rate`
 * measures them, so that all runs with one R do the same work. The log has a line for each iteration of each thread:
 * thread, start, end, and in `coevp` the tasks that the thread did. The trace has a line for each time that a thread
 * was on a core without a break: thread, core, start, end. Times are CLOCK_MONOTONIC seconds. With --pin thread N stays
 * on core N. With --xen-clock seconds of work are those in which Xen lets the processor of the thread's number run,
 * whatever it does in them: for emulated processors, whose speeds differ. All threads then begin within a hundredth of a
 * second if they can. A line then has, instead of tasks, the looks at Xen's clock before and after the iteration's work
 * was done (time and seconds run, each), since when the processor runs, the seconds run at which the work was done, and
 * by how much Xen's clock is ahead of this one at least.
 */
#ifndef WORK_H
#define WORK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu, clock_nanosleep */
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { INDEPENDENT, BARRIER, COEVP, RATE, KINDS };

typedef struct {
    int kind;
    double threads; /* 0 in an MPI program until it is known */
    double iteration;
    double interval;
    bool spin, pin, xen_clock;
    double imbalance;
    double coarse, tasks, fine, spread, wait;
    double seconds, iterations; /* one of them 0 */
    double seed, rate;
    const char *log, *trace;
} Options;

/* Reads the words. Returns a sentence that says what is wrong, or NULL. */
const char *read_options(Options *options, int count, char **words);

/* What a thread, or the process of a rank, notes. */
/* How long Xen let a processor run until a time, and since when it runs, which is a time of Xen's. */
typedef struct {
    double time, ran, since;
} Look;

typedef struct {
    double start, end;
    int number; /* tasks done; the core */
    Look before, after; /* by Xen's clock: around the end of the work */
    double due, ahead;
} Line;

typedef struct {
    Line *lines;
    int count, room;
} Lines;

typedef struct {
    int me;
    Lines log, trace;
    double on_core_since, seen; /* of a trace */
    int core;
    double due; /* by Xen's clock: when the work so far is done */
    Look before, after;
    double ahead; /* the most that a processor ran since a time which is still to come */
} Member;

double now(void);
Line *note(Lines *lines, double start, double end, int number);

/* Rounds of the kernel in a second of this thread's CPU: the most of some tries. */
double measured_rate(void);
void set_rate(double rate, bool by_xen_clock, bool tracing);
/* Whether Xen counts the time of `processors` processors, and what it counts of one. */
bool open_xen_clock(int processors);
Look xen_look(int processor);
/* Keeps the thread that calls to the core of its number. */
void keep_to_own_core(const Member *member);
/* Computes for `seconds` seconds of CPU. */
void compute(Member *member, double seconds);
/* What a thread does while it waits without leaving its core. */
void spin_on(Member *member);
/* Leaves the core until then; and for so long. */
void sleep_until(Member *member, double time);
void nap(Member *member, double seconds);
/* Before a thread leaves its core of its own will, and at its end; and when it is back. */
void leave_core(Member *member);
void enter_core(Member *member);

/* Runs `body` on every thread with what it notes, or on this rank, and writes what was noted. Returns the exit code. */
int run_team(Options *options, void (*body)(Member *, const Options *));
/* All members meet; whether one is `late`. An early member spins or blocks. */
bool meet(Member *member, bool late, bool spin);
/* When all had come to the last meeting, as far as this is known. */
double met_at(void);
/* The tasks of a step: `put_tasks` by one thread before all meet, then numbers from 0, each once. */
void put_tasks(void);
int take_task(void);

void work(Member *member, const Options *options);

#endif
