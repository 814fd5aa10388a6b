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

#include "links_out.h"

/* In seconds: the delay from a change to its writing; the interval between writings of the counters while Slurm asks
 * nothing; the time that the thread gets to finish when slurmctld ends. */
enum { DELAY = 1, HEARTBEAT = 10, PATIENCE = 2 };

/* The published data. Hold the lock to change it or, in the thread, to copy it, but never while a file is written. */
typedef struct {
    Published_Job *jobs; /* in ascending order of job numbers */
    size_t count, room;
    Waiting waiting;
    size_t links_out;
    size_t unnamed; /* nodes that the machine file does not name */
    char such_as[64];
} Board;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static Board board;
static bool has_changed, is_ending;
static pthread_t thread;
static bool has_thread;
static bool has_ended; /* the thread has ended; one that hung may still run */
static const Looks *looks;
static bool is_beginning; /* the thread waits in looks->begin, and uses nothing of the data here */
static bool is_looking;   /* the thread is in looks->look, and uses what the caller of publish_close frees next */
static pthread_cond_t has_looked = PTHREAD_COND_INITIALIZER;
static unsigned era;      /* counts the threads. One that was abandoned in `begin` is not of the present era */
static char *to_directory, *about;
static bool is_active;
static time_t started, booted;
static struct stat ours; /* the file of counters as last written */

/* Replaces a file as a whole. If `written` is not NULL, it gets the new file's status. */
static void replace(const char *name, const char *text, size_t length, struct stat *written)
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
        else if (written && stat(path, written))
            *written = (struct stat){0};
    }
    free(draft);
    free(path);
}

/* A copy of the counters. They may change during the copying. */
static Counters counters_now(void)
{
    Counters copy;
    _Static_assert(sizeof copy % sizeof(uint64_t) == 0, "counters are numbers of 64 bits");
    for (size_t index = 0; index < sizeof copy / sizeof(uint64_t); index++)
        ((uint64_t *)&copy)[index] = __atomic_load_n((uint64_t *)&counters + index, __ATOMIC_RELAXED);
    return copy;
}

static void write_counters(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return;
    Counters now = counters_now();
    fprintf(to, "active %d\nstarted %" PRId64 "\nwritten %" PRId64 "\n", is_active, (int64_t)started, (int64_t)time(NULL));
    if (booted)
        fprintf(to, "booted %" PRId64 "\n", (int64_t)booted);
    counters_print(to, &now);
    if (!fclose(to))
        replace("topolane_counters", text, length, &ours);
    free(text);
}

static void write_jobs(const Board *copy)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return;
    fprintf(to, "topolane-jobs 2 %" PRId64 "\n%s", (int64_t)time(NULL), about ? about : "");
    fprintf(to, "out %zu\n", copy->links_out);
    if (copy->unnamed)
        fprintf(to, "unnamed %zu %s\n", copy->unnamed, copy->such_as);
    for (size_t index = 0; index < copy->count; index++)
        record_running(to, &copy->jobs[index]);
    const Waiting *waiting = &copy->waiting;
    for (size_t index = 0; waiting->candidates && index < WAITING_MOST; index++)
        if (waiting->list[index].job)
            record_refused(to, &waiting->list[index], &waiting->candidates[index * waiting->words], waiting->words);
    if (!fclose(to))
        replace("topolane_jobs", text, length, NULL);
    free(text);
}

static void *copied(const void *from, size_t bytes)
{
    void *copy = from && bytes ? malloc(bytes) : NULL;
    return copy ? memcpy(copy, from, bytes) : NULL;
}

/* Waits until something has changed and a second has passed, or until the next heartbeat. Copies the board if it has
 * changed, and returns whether it has. */
static bool taken(Board *copy, bool *ends)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += HEARTBEAT;
    pthread_mutex_lock(&lock);
    int waited = 0;
    while (!has_changed && !is_ending && waited != ETIMEDOUT)
        waited = pthread_cond_clockwait(&news, &lock, CLOCK_MONOTONIC, &until);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += DELAY;
    waited = 0;
    while (has_changed && !is_ending && waited != ETIMEDOUT)
        waited = pthread_cond_clockwait(&news, &lock, CLOCK_MONOTONIC, &until);
    bool changed = has_changed;
    *ends = is_ending;
    if (changed) {
        *copy = board;
        copy->jobs = copied(board.jobs, board.count * sizeof *board.jobs);
        copy->count = copy->jobs ? board.count : 0;
        copy->waiting.candidates =
            copied(board.waiting.candidates, WAITING_MOST * board.waiting.words * sizeof *board.waiting.candidates);
        has_changed = false;
    }
    pthread_mutex_unlock(&lock);
    return changed;
}

/* Whether another slurmctld has taken control and written the file of counters. */
static bool is_another_in_control(void)
{
    char *path = NULL;
    struct stat now;
    if (asprintf(&path, "%s/topolane_counters", to_directory) < 0)
        return false;
    bool is_another = !stat(path, &now) && (now.st_ino != ours.st_ino || now.st_mtim.tv_sec != ours.st_mtim.tv_sec ||
                                            now.st_mtim.tv_nsec != ours.st_mtim.tv_nsec);
    free(path);
    return is_another;
}

/* Looks at jobs. Returns false if this thread was abandoned meanwhile. */
static bool look(unsigned own)
{
    const Looks *how = looks;
    if (!how || !how->is_due())
        return true;
    pthread_mutex_lock(&lock);
    bool begins = is_beginning = !is_ending;
    pthread_mutex_unlock(&lock);
    if (!begins)
        return true;
    how->begin();
    pthread_mutex_lock(&lock);
    bool is_own = own == era, looks_now = is_own && !is_ending;
    if (is_own)
        is_beginning = false;
    is_looking = is_looking || looks_now;
    pthread_mutex_unlock(&lock);
    if (looks_now) {
        how->look();
        pthread_mutex_lock(&lock);
        is_looking = false;
        pthread_cond_signal(&has_looked);
        pthread_mutex_unlock(&lock);
    }
    how->end();
    return is_own;
}

static void *run(void *with)
{
    unsigned own = (unsigned)(uintptr_t)with;
    for (bool ends = false; !ends;) {
        Board copy;
        if (taken(&copy, &ends)) {
            write_jobs(&copy);
            free(copy.jobs);
            waiting_close(&copy.waiting);
        } else if (ends || is_another_in_control())
            continue;
        write_counters();
        if (ends)
            break;
        links_out_look();
        if (!look(own))
            return NULL;
    }
    __atomic_store_n(&has_ended, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Frees what the thread used. Returns false, and frees nothing, if the thread has not ended. */
static bool clear(void)
{
    if (has_thread && !__atomic_load_n(&has_ended, __ATOMIC_ACQUIRE))
        return false;
    has_thread = false;
    free(to_directory);
    free(about);
    free(board.jobs);
    waiting_close(&board.waiting);
    to_directory = about = NULL;
    board = (Board){0};
    return true;
}

void publish_open(const char *directory, const char *lines, bool active, uint32_t nodes, time_t when_booted,
                  const Looks *how)
{
    if (!clear())
        return; /* A hung thread still uses the data below, so nothing is published. */
    to_directory = strdup(directory);
    about = strdup(lines ? lines : "");
    is_active = active;
    started = time(NULL);
    booted = when_booted;
    looks = how;
    waiting_open(&board.waiting, nodes);
}

/* Starts the thread. It blocks all signals, because they are meant for slurmctld. */
static void start(void)
{
    /* Keep this library loaded, because a hung thread would still execute its code. */
    Dl_info where;
    if (dladdr((void *)publish_open, &where) && where.dli_fname)
        dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    is_ending = has_ended = false;
    has_changed = true;
    is_beginning = false;
    has_thread = !pthread_create(&thread, NULL, run, (void *)(uintptr_t)++era);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void changed(void)
{
    if (!has_changed)
        pthread_cond_signal(&news);
    has_changed = true;
}

void publish_called(void)
{
    static time_t tried;
    if (has_thread) { /* the counters have changed */
        if (!__atomic_load_n(&has_changed, __ATOMIC_RELAXED)) {
            pthread_mutex_lock(&lock);
            changed();
            pthread_mutex_unlock(&lock);
        }
        return;
    }
    time_t now = time(NULL);
    if (to_directory && now != tried)
        start();
    tried = now;
}

/* The index of a job in the board, or where it must be inserted. */
static size_t place_of(uint64_t job)
{
    size_t low = 0, high = board.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (board.jobs[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void publish_running(Published_Job job)
{
    pthread_mutex_lock(&lock);
    size_t place = place_of(job.job);
    bool is_known = place < board.count && board.jobs[place].job == job.job;
    if (!is_known && board.count == board.room) {
        size_t room = board.room ? 2 * board.room : 256;
        Published_Job *more = realloc(board.jobs, room * sizeof *more);
        board.jobs = more ? more : board.jobs;
        board.room = more ? room : board.room;
    }
    if (is_known)
        board.jobs[place] = job;
    else if (board.count < board.room) {
        memmove(&board.jobs[place + 1], &board.jobs[place], (board.count++ - place) * sizeof *board.jobs);
        board.jobs[place] = job;
    }
    waiting_forget(&board.waiting, (uint32_t)job.job);
    changed();
    pthread_mutex_unlock(&lock);
}

void publish_gone(uint64_t job)
{
    pthread_mutex_lock(&lock);
    size_t place = place_of(job);
    if (place < board.count && board.jobs[place].job == job) {
        memmove(&board.jobs[place], &board.jobs[place + 1], (--board.count - place) * sizeof *board.jobs);
        changed();
    }
    pthread_mutex_unlock(&lock);
}

void publish_out(size_t links)
{
    pthread_mutex_lock(&lock);
    board.links_out = links;
    changed();
    pthread_mutex_unlock(&lock);
}

void publish_unnamed(size_t nodes, const char *such_as)
{
    pthread_mutex_lock(&lock);
    board.unnamed = nodes;
    snprintf(board.such_as, sizeof board.such_as, "%s", such_as ? such_as : "");
    for (char *each = board.such_as; *each; each++)
        *each = *each > ' ' && *each <= '~' ? *each : '?';
    changed();
    pthread_mutex_unlock(&lock);
}

bool publish_is_due(uint32_t job, time_t now)
{
    return waiting_is_due(&board.waiting, job, now); /* no lock: a thread changes it only with Slurm's locks */
}

void publish_refused(Refused refused, const uint32_t *candidates, size_t count)
{
    pthread_mutex_lock(&lock);
    waiting_refused(&board.waiting, refused, candidates, count);
    changed();
    pthread_mutex_unlock(&lock);
}

void publish_close(void)
{
    if (!has_thread)
        return;
    pthread_mutex_lock(&lock);
    is_ending = true;
    pthread_cond_signal(&news);
    while (is_looking)
        pthread_cond_wait(&has_looked, &lock);
    bool is_away = is_beginning;
    era += is_away;
    pthread_mutex_unlock(&lock);
    if (is_away) {
        /* The caller may hold the locks of Slurm that the thread waits for. */
        pthread_detach(thread);
        has_thread = false;
        clear();
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    if (pthread_timedjoin_np(thread, NULL, &until))
        pthread_detach(thread); /* publish_open checks whether the thread has ended */
    else
        clear();
}
