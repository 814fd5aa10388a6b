/* What happened how often, and lines in slurmctld's log that cannot flood it. */
#ifndef TOPOLANE_REPORT_H
#define TOPOLANE_REPORT_H

#include <stdint.h>
#include <stdio.h>

/* Calls by their ends. */
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

/* Four classes of time to each power of two, from 256 ns on: under 256 ns, 320, 384, 448, 512, 640 and so on. */
enum { REPORT_LEAST = 8, REPORT_POWERS = 20, REPORT_CLASSES = 4 * REPORT_POWERS };

/* How a call of a job that has a policy, or that is kept off isolated jobs, ended for the engine. */
typedef enum { END_NONE, END_DECIDED, END_INACTIVE, END_FAILED, END_SLOW, END_UNKNOWN, END_OVERSUBSCRIBED, END_KINDS } End;

/* That many of the last calls are kept, four bits each: the thread that publishes copies them as one number. */
enum { RECENT = 16, RECENT_BITS = 4 };

typedef struct {
#define COUNTER(name, meaning) uint64_t name;
    REPORT_COUNTERS(COUNTER)
#undef COUNTER
    uint64_t nanoseconds; /* of all calls, without the stock evaluation */
    uint64_t longest;
    uint64_t recent; /* the last calls by their End, the newest in the lowest bits */
    uint64_t under[REPORT_CLASSES]; /* calls by their time; the last class has all longer ones too */
} Counters;

extern Counters counters;

/* Things to be said once a minute at most, each with how often it happened since. */
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

/* Counts how a call ended for the engine. */
void report_end(End end);

/* Counts the time of a call, without the stock evaluation. */
void report_time(uint64_t nanoseconds);

/* Prints counters, a name and a number a line. */
void counters_print(FILE *to, const Counters *counted);

/* A clock that only goes on, nanoseconds. */
uint64_t steady_time(void);

/* The processor time of this thread, nanoseconds: what waits for the processor is not the engine's fault. */
uint64_t thread_time(void);

#endif
