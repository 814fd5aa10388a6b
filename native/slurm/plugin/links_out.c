#define _GNU_SOURCE
#include "links_out.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digits.h"
#include "links_file.h"
#include "whole_file.h"

static int ascending(const void *one, const void *other)
{
    uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
    return (left > right) - (left < right);
}

size_t links_out_count(const Links_Out *out)
{
    size_t all = out->reserved + out->failed, count = 0;
    uint32_t *sorted = all ? malloc(all * sizeof *sorted) : NULL;
    if (!sorted)
        return all;
    memcpy(sorted, out->links, all * sizeof *sorted);
    qsort(sorted, all, sizeof *sorted, ascending);
    for (size_t index = 0; index < all; index++)
        count += index == 0 || sorted[index] != sorted[index - 1];
    free(sorted);
    return count;
}

bool links_out_same(const Links_Out *one, const Links_Out *other)
{
    size_t all = one->reserved + one->failed;
    return one->reserved == other->reserved && one->failed == other->failed &&
           (all == 0 || !memcmp(one->links, other->links, all * sizeof *one->links));
}

void links_out_free(Links_Out *out)
{
    free(out->links);
    *out = (Links_Out){0};
}

/* Reads a line of ascending numbers. */
static bool take_line(Text *text, uint32_t *links, size_t count)
{
    uint64_t number, last = 0;
    for (size_t index = 0; index < count; index++) {
        if ((index && !take_sign(text, ' ')) || !take_number(text, UINT32_MAX, &number) || (index && number <= last))
            return false;
        links[index] = (uint32_t)number;
        last = number;
    }
    return take_sign(text, '\n');
}

/* Reads the two lines of links. Their counts are checked against the remaining text before memory is allocated. */
static bool take_links(Links_Out *out, Text text)
{
    enum { LEAST_BYTES = 2 }; /* a digit and the character after it */
    size_t most = (size_t)(text.end - text.at) / LEAST_BYTES;
    if (out->reserved > most || out->failed > most - out->reserved)
        return false;
    out->links = malloc((out->reserved + out->failed + 1) * sizeof *out->links);
    return out->links && take_sign(&text, '\n') && take_line(&text, out->links, out->reserved) &&
           take_line(&text, out->links + out->reserved, out->failed) && text.at == text.end;
}

/* Reads a text. Returns NULL, or what is wrong with it. */
static const char *parse(Links_Out *out, const char *text, size_t length, uint64_t machine)
{
    const char *tail = memrchr(text, 's', length);
    uint64_t of = 0, sum = 0;
    int head = 0;
    if (!tail || sscanf(tail, "sum %" SCNx64, &sum) != 1 || sum != sum_of(text, (size_t)(tail - text)) ||
        sscanf(text, "topolane-links-out 1 %" SCNx64 " %zu %zu%n", &of, &out->reserved, &out->failed, &head) != 3 ||
        text + head > tail)
        return "the file of links out of service is not whole";
    if (of != machine)
        return "the file of links out of service is of another machine file";
    if (!take_links(out, (Text){text + head, tail}))
        return "the file of links out of service cannot be read";
    return NULL;
}

char *links_out_read(Links_Out *out, const char *path, uint64_t machine)
{
    *out = (Links_Out){0};
    size_t length = 0;
    char *text = NULL, *error = whole_file(path, MOST_LINKS_OUT, &text, &length);
    if (error && access(path, F_OK) && errno == ENOENT) {
        free(error);
        return NULL;
    }
    if (error)
        return error;
    const char *why = parse(out, text, length, machine);
    if (why)
        links_out_free(out);
    free(text);
    return why ? strdup(why) : NULL;
}

/* Values that differ between a file and the earlier file of the same name. */
typedef struct {
    struct timespec changed;
    off_t size;
    ino_t number;
} Stamp;

/* Never hold the lock while a file is read. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char file[PATH_MAX]; /* empty if closed */
static uint64_t of_machine;
static uint64_t times_opened; /* a result of a look that began before the latest opening is discarded */
static Stamp seen;
static bool is_new; /* may be read without the lock */
static Links_Out found;
static char *found_why;

static void forget(void)
{
    links_out_free(&found);
    free(found_why);
    found_why = NULL;
    __atomic_store_n(&is_new, false, __ATOMIC_RELAXED);
}

void links_out_open(const char *directory, uint64_t machine)
{
    pthread_mutex_lock(&lock);
    forget();
    if (snprintf(file, sizeof file, "%s/topolane_links_out", directory) >= (int)sizeof file)
        *file = '\0';
    of_machine = machine;
    times_opened++;
    seen = (Stamp){0};
    pthread_mutex_unlock(&lock);
}

void links_out_close(void)
{
    pthread_mutex_lock(&lock);
    forget();
    *file = '\0';
    times_opened++;
    pthread_mutex_unlock(&lock);
}

/* The stamp of a file; zero if the file does not exist. */
static Stamp stamp_of(const char *path)
{
    struct stat facts;
    if (stat(path, &facts))
        return (Stamp){0};
    return (Stamp){.changed = facts.st_mtim, .size = facts.st_size, .number = facts.st_ino};
}

static bool same_stamp(Stamp one, Stamp other)
{
    return one.changed.tv_sec == other.changed.tv_sec && one.changed.tv_nsec == other.changed.tv_nsec &&
           one.size == other.size && one.number == other.number;
}

void links_out_look(void)
{
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    memcpy(path, file, sizeof path);
    uint64_t machine = of_machine, opened = times_opened;
    Stamp before = seen;
    pthread_mutex_unlock(&lock);
    Stamp now = *path ? stamp_of(path) : before;
    if (same_stamp(now, before))
        return;
    Links_Out out;
    char *why = links_out_read(&out, path, machine);
    pthread_mutex_lock(&lock);
    if (opened == times_opened) {
        forget();
        found = out;
        found_why = why;
        seen = now;
        __atomic_store_n(&is_new, true, __ATOMIC_RELAXED);
        out = (Links_Out){0};
        why = NULL;
    }
    pthread_mutex_unlock(&lock);
    links_out_free(&out);
    free(why);
}

bool links_out_take(Links_Out *out, char **why)
{
    if (!__atomic_load_n(&is_new, __ATOMIC_RELAXED))
        return false;
    pthread_mutex_lock(&lock);
    bool is_taken = is_new;
    *out = found;
    *why = found_why;
    found = (Links_Out){0};
    found_why = NULL;
    __atomic_store_n(&is_new, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return is_taken;
}
