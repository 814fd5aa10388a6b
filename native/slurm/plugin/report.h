/* Counts events, and limits lines in slurmctld's log so that they cannot flood it. */
#ifndef TOPOLANE_REPORT_H
#define TOPOLANE_REPORT_H

#include <stdint.h>
#include <stdio.h>

/* Counters of calls, by how they ended. */
#define REPORT_COUNTERS(COUNTER)                                                                                    \
    COUNTER(calls, "calls of topology_p_eval_nodes")                                                                \
    COUNTER(placed, "a policy's nodes, with which the stock evaluation agreed")                                     \
    COUNTER(kept_off, "nodes of the stock evaluation, kept off the links of isolated jobs")                         \
    COUNTER(in_area, "nodes of the stock evaluation, in an area that no other job's links touch")                   \
    COUNTER(refused, "the job waits: its policy has no place for it")                                               \
    COUNTER(repeated, "of them, those that repeat the last question: no policy was asked again")                    \
    COUNTER(stock, "no policy was asked: the job's rule is stock")                                                  \
    COUNTER(stock_inactive, "stock, because the plugin is not active (configuration, machine file or engine)")      \
    COUNTER(stock_failed, "stock, because the engine failed")                                                       \
    COUNTER(stock_slow, "stock, because the engine took too long, or rests after it did")                           \
    COUNTER(stock_unknown, "stock, because of nodes that the machine file does not name")                           \
    COUNTER(stock_oversubscribed, "stock, because the job may share cores with others")                             \
    COUNTER(held, "the job waits, because it is to be isolated and the engine cannot answer")                      \
    COUNTER(options_ignored, "words of the job's --topolane that JobsMay or its policy does not allow")              \
    COUNTER(links_unwritten, "the file of owned links could not be written")

/* Classes of durations, four for each power of two from 256 ns on: under 256 ns, 320, 384, 448, 512, 640 and so on. */
enum { REPORT_LEAST = 8, REPORT_POWERS = 20, REPORT_CLASSES = 4 * REPORT_POWERS };

/* How the engine's part of a call ended, for a job that has a policy or must avoid isolated jobs. */
typedef enum { END_NONE, END_DECIDED, END_INACTIVE, END_FAILED, END_SLOW, END_UNKNOWN, END_OVERSUBSCRIBED, END_KINDS } End;

/* The number of latest calls that are kept, with four bits each, so that the publishing thread copies them as one
 * number. */
enum { RECENT = 16, RECENT_BITS = 4 };

typedef struct {
#define COUNTER(name, meaning) uint64_t name;
    REPORT_COUNTERS(COUNTER)
#undef COUNTER
    uint64_t nanoseconds; /* sum over all calls, without the stock evaluation */
    uint64_t longest;
    uint64_t recent; /* the latest calls by their End, the newest in the lowest bits */
    uint64_t under[REPORT_CLASSES]; /* number of calls by duration; the last class includes all longer ones */
} Counters;

extern Counters counters;

/* Messages that are logged at most once a minute, with the number of repetitions since. */
typedef enum {
    SAY_ENGINE,
    SAY_SLOW,
    SAY_INACTIVE,
    SAY_STOCK,
    SAY_HELD,
    SAY_UNKNOWN,
    SAY_OVERSUBSCRIBED,
    SAY_LINKS,
    SAY_STATE,
    SAY_OPTION,
    SAY_OUT,
    SAY_COUNT
} Say;

__attribute__((format(printf, 2, 3))) void say(Say what, const char *format, ...);

/* Records how the engine's part of a call ended. */
void report_end(End end);

/* Adds the duration of a call, without the stock evaluation. */
void report_time(uint64_t nanoseconds);

/* Prints the counters: a name and a number on each line. */
void counters_print(FILE *to, const Counters *counted);

/* A monotonic clock, in nanoseconds. */
uint64_t steady_time(void);

/* The processor time of this thread, in nanoseconds. It excludes time spent waiting for the processor. */
uint64_t thread_time(void);

#endif
