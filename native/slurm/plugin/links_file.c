#define _GNU_SOURCE
#include "links_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digits.h"
#include "whole_file.h"

static const char HEAD[] = "topolane-links 1";

uint64_t sum_of(const char *bytes, size_t length)
{
    return sum_on(SUM_OF_NOTHING, bytes, length);
}

uint64_t sum_on(uint64_t sum, const char *bytes, size_t length)
{
    for (size_t index = 0; index < length; index++)
        sum = (sum ^ (unsigned char)bytes[index]) * 1099511628211u;
    return sum;
}

/* The index of a job in the list, or where it must be inserted. */
static size_t place_of(const Owners *owners, uint64_t job)
{
    size_t low = 0, high = owners->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (owners->list[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const Owned *owners_find(const Owners *owners, uint64_t job)
{
    size_t place = place_of(owners, job);
    return place < owners->count && owners->list[place].job == job ? &owners->list[place] : NULL;
}

static void free_owned(Owned *owned)
{
    free(owned->nodes);
    free(owned->links);
}

static bool same_numbers(const uint32_t *one, size_t count, const uint32_t *other, size_t others)
{
    return count == others && (count == 0 || !memcmp(one, other, count * sizeof *one));
}

static uint32_t *copied(const uint32_t *numbers, size_t count)
{
    uint32_t *copy = malloc((count ? count : 1) * sizeof *copy);
    if (copy && count)
        memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

const Owned *owners_set(Owners *owners, const Owned *owned)
{
    const Owned *known = owners_find(owners, owned->job);
    if (known && same_numbers(known->nodes, known->node_count, owned->nodes, owned->node_count) &&
        same_numbers(known->links, known->link_count, owned->links, owned->link_count) &&
        known->bandwidth_share == owned->bandwidth_share)
        return known;
    Owned new = *owned;
    new.in_file = false;
    new.nodes = copied(owned->nodes, owned->node_count);
    new.links = copied(owned->links, owned->link_count);
    size_t place = place_of(owners, owned->job);
    if (!known) {
        Owned *more = realloc(owners->list, (owners->count + 1) * sizeof *more);
        if (more)
            owners->list = more;
        if (!more || !new.nodes || !new.links) {
            free_owned(&new);
            return NULL;
        }
        memmove(&more[place + 1], &more[place], (owners->count - place) * sizeof *more);
        owners->count++;
    } else if (!new.nodes || !new.links) {
        free_owned(&new);
        return NULL;
    } else
        free_owned(&owners->list[place]);
    owners->list[place] = new;
    return &owners->list[place];
}

static bool is_other(uint64_t job, void *with)
{
    return job != *(uint64_t *)with;
}

bool owners_remove(Owners *owners, uint64_t job)
{
    if (!owners_find(owners, job))
        return false;
    owners_keep(owners, is_other, &job);
    return true;
}

void owners_keep(Owners *owners, bool (*keep)(uint64_t job, void *with), void *with)
{
    size_t kept = 0;
    for (size_t index = 0; index < owners->count; index++) {
        if (keep(owners->list[index].job, with))
            owners->list[kept++] = owners->list[index];
        else
            free_owned(&owners->list[index]);
    }
    owners->count = kept;
}

void owners_free(Owners *owners)
{
    for (size_t index = 0; index < owners->count; index++)
        free_owned(&owners->list[index]);
    free(owners->list);
    owners->list = NULL;
    owners->count = 0;
}

static void print_numbers(FILE *to, const uint32_t *numbers, size_t count)
{
    fprintf(to, " %zu", count);
    for (size_t index = 0; index < count; index++)
        fprintf(to, " %" PRIu32, numbers[index]);
}

static char *failed(const char *what, const char *path)
{
    char *text = NULL;
    return asprintf(&text, "%s %s: %s", path, what, strerror(errno)) < 0 ? strdup("no memory") : text;
}

char *owners_write(Owners *owners, const char *path)
{
    char *text = NULL, *draft = NULL, *error = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to || asprintf(&draft, "%s.new", path) < 0) {
        if (to)
            fclose(to);
        free(text);
        return strdup("no memory");
    }
    fprintf(to, "%s %016" PRIx64 " %zu\n", HEAD, owners->machine, owners->count);
    for (size_t index = 0; index < owners->count; index++) {
        const Owned *owned = &owners->list[index];
        fprintf(to, "%" PRIu64 " %.17g", owned->job, owned->bandwidth_share);
        print_numbers(to, owned->nodes, owned->node_count);
        print_numbers(to, owned->links, owned->link_count);
        fputc('\n', to);
    }
    fflush(to);
    fprintf(to, "sum %016" PRIx64 "\n", sum_of(text, length));
    if (fclose(to))
        error = strdup("no memory");
    /* No fsync: after a crash of the host, the checksum shows whether the file is whole, and missing links are safe. */
    int file = error ? -1 : open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (!error && file < 0)
        error = failed("cannot be written", draft);
    for (size_t done = 0; !error && done < length;) {
        ssize_t wrote = write(file, text + done, length - done);
        if (wrote < 0 && errno != EINTR)
            error = failed("cannot be written", draft);
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    if (file >= 0 && close(file) && !error)
        error = failed("cannot be written", draft);
    if (!error && rename(draft, path))
        error = failed("cannot be replaced", path);
    /* The old file must not be read after a restart, because some of its links are outdated. */
    if (error)
        unlink(path);
    for (size_t index = 0; index < owners->count; index++)
        owners->list[index].in_file = !error;
    free(text);
    free(draft);
    return error;
}

/* Reads a count and that many numbers. The count is checked against the remaining text before memory is allocated. */
static bool take_numbers(Text *text, uint32_t **numbers, size_t *count, bool is_ascending)
{
    enum { LEAST_BYTES = 2 }; /* a blank and a digit */
    uint64_t number, last = 0;
    if (!take_sign(text, ' ') || !take_number(text, UINT32_MAX, &number) ||
        number > (uint64_t)(text->end - text->at) / LEAST_BYTES)
        return false;
    *count = (size_t)number;
    *numbers = malloc((*count ? *count : 1) * sizeof **numbers);
    for (size_t index = 0; *numbers && index < *count; index++) {
        if (!take_sign(text, ' ') || !take_number(text, UINT32_MAX, &number) || (is_ascending && index && number <= last))
            return false;
        (*numbers)[index] = (uint32_t)number;
        last = number;
    }
    return *numbers != NULL;
}

static bool take_share(Text *text, double *share)
{
    /* strtod alone would also accept blanks, signs, `inf` and `nan`. */
    if (!take_sign(text, ' ') || text->at == text->end || *text->at < '0' || *text->at > '9')
        return false;
    char *end;
    *share = strtod(text->at, &end);
    text->at = end;
    return *share > 0 && *share <= 1;
}

/* Reads the line of a job. The caller frees the arrays, even if the line is wrong. */
static bool take_job(Text *text, Owned *owned)
{
    return take_number(text, UINT64_MAX, &owned->job) && take_share(text, &owned->bandwidth_share) &&
           take_numbers(text, &owned->nodes, &owned->node_count, true) &&
           take_numbers(text, &owned->links, &owned->link_count, false) && take_sign(text, '\n');
}

/* Reads the lines of the jobs. Returns NULL, or what is wrong with the file. Jobs must be in ascending order, because
 * each is appended to the list. */
static char *take_jobs(Owners *owners, Text text, size_t jobs)
{
    enum { LEAST_BYTES = 8 }; /* length of the shortest line: `1 1 0 0` */
    char *why = NULL;
    if (!take_sign(&text, '\n') || jobs > (size_t)(text.end - text.at) / LEAST_BYTES)
        return strdup("its first line does not fit the rest");
    owners->list = malloc((jobs ? jobs : 1) * sizeof *owners->list);
    if (!owners->list)
        return strdup("no memory");
    for (size_t line = 2; owners->count < jobs; line++) {
        Owned owned = {0};
        uint64_t last = owners->count ? owners->list[owners->count - 1].job : 0;
        bool is_whole = take_job(&text, &owned);
        if (is_whole && owned.job > last) {
            owned.in_file = true;
            owners->list[owners->count++] = owned;
            continue;
        }
        free_owned(&owned);
        int length = is_whole ? asprintf(&why, "line %zu: job %" PRIu64 " comes after job %" PRIu64, line, owned.job, last)
                              : asprintf(&why, "line %zu is not a job, its share, its nodes and its links", line);
        return length < 0 ? strdup("no memory") : why;
    }
    return text.at == text.end ? NULL : strdup("it has more lines than its first line says");
}

/* Reads the text of a file. Returns NULL, or what is wrong with it. */
static char *parse(Owners *owners, const char *text, size_t length)
{
    const char *tail = memrchr(text, 's', length);
    uint64_t machine = 0, sum = 0;
    size_t jobs = 0;
    int head = 0;
    if (!tail || sscanf(tail, "sum %" SCNx64, &sum) != 1 || sum != sum_of(text, (size_t)(tail - text)) ||
        sscanf(text, "topolane-links 1 %" SCNx64 " %zu%n", &machine, &jobs, &head) != 2 || text + head > tail)
        return strdup("it is not whole");
    if (machine != owners->machine)
        return strdup("it is of another machine file");
    return take_jobs(owners, (Text){text + head, tail}, jobs);
}

char *owners_read(Owners *owners, const char *path)
{
    size_t length = 0;
    char *text = NULL, *error = whole_file(path, MOST_LINKS, &text, &length);
    if (error && access(path, F_OK)) {
        free(error);
        return NULL;
    }
    if (error)
        return error;
    char *why = parse(owners, text, length);
    free(text);
    if (!why)
        return NULL;
    owners_free(owners);
    if (asprintf(&error, "the file of owned links is not used: %s", why) < 0)
        error = strdup("no memory");
    free(why);
    return error;
}
