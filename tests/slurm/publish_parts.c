/* The publishing thread, its end and its successor, while it waits for locks that another thread holds and while it looks, under the
 * sanitizers. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "publish.h"

#define CHECK(what)                                                                                                 \
    do {                                                                                                            \
        if (!(what)) {                                                                                              \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #what);                                        \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

enum { THREADS = 8 };

Counters counters;

void counters_print(FILE *to, const Counters *counted)
{
    fprintf(to, "calls %llu\n", (unsigned long long)counted->calls);
}

/* What each thread did, by the order in which they came to the locks first. */
static atomic_int threads, begun[THREADS], looked[THREADS], ended[THREADS];
static _Thread_local int self;
static pthread_mutex_t slurms_locks = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool looks_slowly, is_closed, is_closed_in_look;

static void pause_until(atomic_int *number)
{
    while (!atomic_load(number))
        usleep(1000);
}

static bool is_due(void)
{
    return true;
}

static void begin(void)
{
    if (!self)
        self = ++threads;
    begun[self]++;
    pthread_mutex_lock(&slurms_locks);
}

/* A slow look lasts longer than publish_close waits for a disk. */
static void look(void)
{
    looked[self]++;
    if (looks_slowly) {
        sleep(4);
        is_closed_in_look = is_closed;
    }
}

static void end(void)
{
    pthread_mutex_unlock(&slurms_locks);
    ended[self]++;
}

static const Looks LOOKS = {is_due, begin, look, end};

static void open_in(const char *directory)
{
    publish_open(directory, "", true, 32, 0, &LOOKS);
    publish_called();
}

/* A caller with the locks closes and opens while the thread waits for them. It never waits for the thread, its successor publishes,
 * and the thread neither looks nor keeps the locks when it gets them. */
static void test_wait(const char *directory)
{
    pthread_mutex_lock(&slurms_locks);
    open_in(directory);
    pause_until(&begun[1]);
    publish_close();
    open_in(directory);
    pause_until(&begun[2]);
    pthread_mutex_unlock(&slurms_locks);
    pause_until(&ended[1]);
    pause_until(&ended[2]);
    CHECK(!looked[1] && looked[2]);
    publish_close();
}

/* A thread that looks uses what the caller frees next: closing waits for the end of the look, however long that takes. */
static void test_look(const char *directory)
{
    looks_slowly = true;
    open_in(directory);
    pause_until(&looked[3]);
    publish_close();
    is_closed = true;
    pause_until(&ended[3]);
    CHECK(!is_closed_in_look && looked[3] == 1);
}

int main(int count, char **words)
{
    CHECK(count == 2);
    test_wait(words[1]);
    test_look(words[1]);
    puts("ok");
    return 0;
}
