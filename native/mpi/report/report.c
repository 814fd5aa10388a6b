/* Sends the counts at an interval of seconds or of changed entries, and receives site maps. */
#include "report.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../counts.h"
#include "connection.h"
#include "records.h"
#include "site_maps.h"

/* In nanoseconds. */
#define SECOND 1000000000u
static const uint64_t LEAST_BETWEEN = SECOND / 10;      /* least time between reports triggered by changed entries */
static const uint64_t LEAST_BACK_OFF = SECOND / 10, MOST_BACK_OFF = 5 * (uint64_t)SECOND;
static const uint64_t PATIENCE = 5 * (uint64_t)SECOND;  /* limit of the wait for a receiver's WELCOME */

/* Only the thread uses these, except for `ending` and `wake`. */
static struct {
    const char *address;
    Frame *hello;
    size_t hello_sent;
    Connection connection;
    Kept kept;
    uint64_t sequence, dropped;
    uint64_t interval, next, back_off, next_try, give_up, end;
    bool refused, once_welcome, said_bye;
    _Atomic bool ending;
    int wake;
    sem_t over;
} report = {.connection = {.fd = -1}, .wake = -1};

void report_wake(void)
{
    if (report.wake >= 0 && write(report.wake, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return;    /* the thread is awake already */
}

static uint64_t now(void)
{
    return nanoseconds(CLOCK_MONOTONIC);
}

static void heard(void *to, int kind, const unsigned char *payload, size_t length)
{
    (void)to;
    if (kind == WELCOME) {
        char text[256] = "";
        memcpy(text, payload, length < sizeof text ? length : sizeof text - 1);
        const char *last = strstr(text, "\"last\"");
        last = last ? strchr(last, ':') : NULL;
        report.connection.welcome = report.once_welcome = true;
        report.back_off = LEAST_BACK_OFF;
        kept_again(&report.kept);
        kept_drop(&report.kept, last ? strtoull(last + 1, NULL, 10) : 0);
    } else if (kind == ACK && length == sizeof(uint64_t)) {
        uint64_t last;
        memcpy(&last, payload, sizeof last);
        kept_drop(&report.kept, last);
    } else if (kind == SITES) {
        site_map_heard(payload, length);
    } else if (kind == REFUSED) {
        report.refused = true;
    }
}

static void lost(void)
{
    connection_close(&report.connection);
    report.next_try = now() + report.back_off;
    report.back_off = 2 * report.back_off < MOST_BACK_OFF ? 2 * report.back_off : MOST_BACK_OFF;
}

static void connect_again(void)
{
    report.hello_sent = 0;
    if (connection_open(&report.connection, report.address))
        report.give_up = now() + PATIENCE;
    else
        lost();
}

static void say_bye(void)
{
    Frame *frame = frame_new(64);
    if (!frame)
        return;
    int length = snprintf((char *)frame->bytes + HEADER, 64, "{\"dropped\": %llu}", (unsigned long long)report.dropped);
    frame_seal(frame, BYE, ++report.sequence, (size_t)length);
    kept_add(&report.kept, frame);
    report.said_bye = true;
}

/* Makes frames when their time has come, unless the limit of unacknowledged bytes is reached. */
static void make_frames(bool ending)
{
    if (ending && !report.said_bye) {
        report.dropped += records_make(&report.kept, &report.sequence, true);
        say_bye();
        report.end = now() + SECOND;
    } else if (!ending && now() >= report.next) {
        if (report.kept.bytes < MOST_KEPT)
            report.dropped += records_make(&report.kept, &report.sequence, true);
        report.next = now() + report.interval;
    }
}

/* Waits for input or until a time. */
static void wait_for(uint64_t until)
{
    uint64_t begun = now();
    bool more = report.hello_sent < report.hello->length || (report.connection.welcome && report.kept.sending);
    struct pollfd watched[] = {
        {.fd = report.wake, .events = POLLIN},
        {.fd = report.connection.fd, .events = (short)(POLLIN | (more ? POLLOUT : 0))},
    };
    poll(watched, 2, until > begun ? (int)((until - begun) / 1000000 + 1) : 0);
    uint64_t count;
    if (watched[0].revents && read(report.wake, &count, sizeof count) > 0 && report.next > now() + LEAST_BETWEEN)
        report.next = now() + LEAST_BETWEEN;
}

static uint64_t earliest(void)
{
    uint64_t first = report.next;
    if (report.connection.fd < 0 && report.next_try < first)
        first = report.next_try;
    if (report.connection.fd >= 0 && !report.connection.welcome && report.give_up < first)
        first = report.give_up;
    return first;
}

/* Whether the program need not wait any longer at its end: nothing is left to send, no receiver ever
 * answered, or the time is over. */
static bool finished(void)
{
    return !report.kept.first || (report.connection.fd < 0 && !report.once_welcome) || now() > report.end;
}

static void *reporting(void *nothing)
{
    while (!report.refused) {
        bool ending = atomic_load(&report.ending);
        make_frames(ending);
        if (report.connection.fd < 0 && (ending ? report.next_try <= now() + SECOND / 10 : report.next_try <= now()))
            connect_again();
        if (report.connection.fd >= 0 &&
            (!connection_send(&report.connection, report.hello, &report.hello_sent, &report.kept) ||
             !connection_receive(&report.connection, heard, NULL) ||
             (!report.connection.welcome && now() > report.give_up)))
            lost();
        if (ending && finished())
            break;
        wait_for(ending ? now() + SECOND / 50 : earliest());
    }
    connection_close(&report.connection);
    sem_post(&report.over);
    return nothing;
}

/* Runs in a forked child: it has no such thread, and the connection belongs to its parent. */
static void forked(void)
{
    watching = false;
    if (report.connection.fd >= 0)
        close(report.connection.fd);
    report.connection.fd = -1;
    report.wake = -1;
}

static double number(const char *name, double otherwise)
{
    const char *text = getenv(name);
    char *end;
    double value = text ? strtod(text, &end) : otherwise;
    return text && (end == text || !(value >= 0)) ? otherwise : value;
}

/* Starts the thread. It blocks all signals, because they are meant for the program. */
static bool start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = pthread_create(&thread, &attributes, reporting, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return made;
}

void report_begin(int rank, int ranks, const char *mpi)
{
    report.address = getenv("TOPOLANE_MPI_MANAGER");
    if (!report.address || !*report.address)
        return;
    report.hello = hello_frame(rank, ranks, mpi);
    if (!report.hello) {
        if (rank == 0)
            fputs("topolane: the launcher gives the program no name; set TOPOLANE_MPI_PROGRAM and it is reported\n", stderr);
        return;
    }
    report.address = strdup(report.address);
    report.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    report.interval = (uint64_t)(SECOND * number("TOPOLANE_MPI_SECONDS", 1.0));
    if (report.interval < SECOND / 100)
        report.interval = SECOND / 100;
    counts.wake_at = (uint32_t)number("TOPOLANE_MPI_RECORDS", 1000);
    report.back_off = LEAST_BACK_OFF;
    report.next = now() + report.interval;
    kept_open(&report.kept);
    records_begin();
    sem_init(&report.over, 0, 0);
    pthread_atfork(NULL, NULL, forked);
    if (!report.address || report.wake < 0 || !start_thread())
        report.wake = -1;
}

void report_end(void)
{
    if (report.wake < 0)
        return;
    atomic_store(&report.ending, true);
    report_wake();
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    while (sem_timedwait(&report.over, &until) != 0 && errno == EINTR)
        ;
}
