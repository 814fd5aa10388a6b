#define _GNU_SOURCE
#include "publish.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Seconds: after so many the counters are written again even if Slurm asks nothing; so many a disk has when slurmctld ends. */
enum { HEARTBEAT = 10, PATIENCE = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static Published *given; /* not yet taken by the thread */
static bool is_ending;
static pthread_t thread;
static pid_t thread_process; /* 0 without a thread; one of a former process did not survive a fork */
static char *to_directory;

void published_free(Published *published)
{
    if (!published)
        return;
    free(published->about);
    free(published->running);
    waiting_close(&published->waiting);
    free(published);
}

/* Puts a text in the place of a file, as a whole. */
static void replace(const char *name, const char *text, size_t length)
{
    char *path = NULL, *draft = NULL;
    if (asprintf(&path, "%s/%s", to_directory, name) < 0)
        path = NULL;
    if (!path || asprintf(&draft, "%s.new", path) < 0)
        draft = NULL;
    FILE *to = draft ? fopen(draft, "we") : NULL;
    if (to) {
        fchmod(fileno(to), 0640);
        bool is_whole = fwrite(text, 1, length, to) == length;
        if (fclose(to) || !is_whole || rename(draft, path))
            unlink(draft);
    }
    free(draft);
    free(path);
}

static void write_counters(const Published *published)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return;
    fprintf(to, "active %d\nstarted %" PRId64 "\nwritten %" PRId64 "\n", published->is_active,
            (int64_t)published->started, (int64_t)time(NULL));
    counters_print(to, &published->counters);
    if (!fclose(to))
        replace("topolane_counters", text, length);
    free(text);
}

/* Prints the bits that are set as `0-3,8`; `-` for none. */
static void print_bits(FILE *to, const uint64_t *bits, size_t words)
{
    size_t end = words * 64, printed = 0;
    for (size_t bit = 0; bit < end; bit++) {
        if (!(bits[bit / 64] >> bit % 64 & 1))
            continue;
        size_t last = bit;
        while (last + 1 < end && bits[(last + 1) / 64] >> (last + 1) % 64 & 1)
            last++;
        fprintf(to, last > bit ? "%s%zu-%zu" : "%s%zu", printed++ ? "," : "", bit, last);
        bit = last;
    }
    if (!printed)
        fputc('-', to);
}

static void write_jobs(const Published *published)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return;
    fprintf(to, "topolane-jobs 1 %" PRId64 "\n%s", (int64_t)published->moment, published->about ? published->about : "");
    for (size_t index = 0; index < published->running_count; index++) {
        const Published_Job *job = &published->running[index];
        fprintf(to, "running %" PRIu64 " %s %s %g\n", job->job, job->policy, job->link_use, job->bandwidth_share);
    }
    const Waiting *waiting = &published->waiting;
    for (size_t index = 0; waiting->candidates && index < WAITING_MOST; index++) {
        const Refused *refused = &waiting->list[index];
        if (!refused->job)
            continue;
        fprintf(to, "waiting %" PRIu32 " %s %g %" PRId64 " %s %" PRIu32 " ", refused->job, refused->policy,
                refused->min_bandwidth, (int64_t)refused->refused, refused->kind, refused->wanted);
        print_bits(to, &waiting->candidates[index * waiting->words], waiting->words);
        fputc('\n', to);
    }
    if (!fclose(to))
        replace("topolane_jobs", text, length);
    free(text);
}

/* Waits for news. Returns them, or NULL after a heartbeat or at the end. */
static Published *taken(bool *ends)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HEARTBEAT;
    pthread_mutex_lock(&lock);
    int waited = 0;
    while (!given && !is_ending && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&news, &lock, &until);
    Published *found = given;
    given = NULL;
    *ends = is_ending && !found;
    pthread_mutex_unlock(&lock);
    return found;
}

static void *run(void *unused)
{
    (void)unused;
    Published *last = NULL;
    for (bool ends = false; !ends;) {
        Published *found = taken(&ends);
        if (found) {
            published_free(last);
            last = found;
            write_jobs(last);
        }
        if (last && !ends)
            write_counters(last);
    }
    published_free(last);
    return NULL;
}

/* The thread takes no signals: they are slurmctld's. */
static bool start(const char *directory)
{
    Dl_info where;
    free(to_directory);
    to_directory = strdup(directory);
    if (!to_directory)
        return false;
    /* A thread that is left behind at the end must not lose its code. */
    if (dladdr((void *)publish, &where) && where.dli_fname)
        dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    is_ending = false;
    bool is_running = !pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread_process = is_running ? getpid() : 0;
    return is_running;
}

void publish(const char *directory, Published *published)
{
    /* The thread holds the lock for a few instructions only, never while it writes. */
    if (thread_process != getpid()) {
        if (!start(directory)) {
            published_free(published);
            return;
        }
    }
    pthread_mutex_lock(&lock);
    Published *former = given;
    given = published;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
    published_free(former);
}

void publish_close(void)
{
    if (thread_process != getpid())
        return;
    pthread_mutex_lock(&lock);
    is_ending = true;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    if (pthread_timedjoin_np(thread, NULL, &until))
        pthread_detach(thread);
    thread_process = 0;
}
