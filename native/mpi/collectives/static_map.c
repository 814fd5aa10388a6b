#include "static_map.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(const char *form, ...)
{
    va_list arguments;
    fputs("topolane: TOPOLANE_MPI_SITES: ", stderr);
    va_start(arguments, form);
    vfprintf(stderr, form, arguments);
    va_end(arguments);
    fputs("; collectives stay flat\n", stderr);
    return false;
}

bool is_list(const char *value)
{
    return value[strspn(value, "0123456789, ")] == '\0';
}

bool sites_of_list(const char *value, int ranks, uint16_t *site)
{
    const char *next = value;
    for (int rank = 0; rank < ranks; rank++) {
        char *end;
        errno = 0;
        unsigned long number = strtoul(next, &end, 10);
        if (end == next)
            return wrong("\"%s\" has %d sites for %d ranks", value, rank, ranks);
        if (errno || number > UINT16_MAX)
            return wrong("site %.*s is above %d", (int)(end - next), next, UINT16_MAX);
        site[rank] = (uint16_t)number;
        next = end + strspn(end, " ");
        if (*next == ',' && rank + 1 < ranks)
            next++;
    }
    return *next ? wrong("\"%s\" has more sites than the %d ranks", value, ranks) : true;
}

/* A line "host site". Sites are arbitrary words, numbered by first occurrence. */
typedef struct {
    char host[HOST_NAME], site[HOST_NAME];
    uint16_t number;
} Line;

static uint16_t number_of(const Line *lines, int known, const char *site)
{
    uint16_t next = 0;
    for (int i = 0; i < known; i++) {
        if (!strcmp(lines[i].site, site))
            return lines[i].number;
        if (lines[i].number >= next)
            next = (uint16_t)(lines[i].number + 1);
    }
    return next;
}

static Line *read_lines(FILE *file, const char *name, int *known)
{
    Line *lines = NULL;
    char text[2 * HOST_NAME + 16], rest[2];
    *known = 0;
    for (int line = 1; fgets(text, sizeof text, file); line++) {
        text[strcspn(text, "#\n")] = '\0';
        if (!text[strspn(text, " \t\r")])
            continue;
        Line *more = realloc(lines, (size_t)(*known + 1) * sizeof *lines);
        if (more)
            lines = more;
        if (!more || sscanf(text, "%255s %255s %1s", more[*known].host, more[*known].site, rest) != 2) {
            wrong("%s line %d: \"%s\" is not a host and a site", name, line, text);
            free(lines);
            return NULL;
        }
        lines[*known].number = number_of(lines, *known, lines[*known].site);
        (*known)++;
    }
    if (!lines)
        wrong("%s names no host", name);
    return lines;
}

bool sites_of_file(const char *name, int ranks, const char *hosts, uint16_t *site)
{
    FILE *file = fopen(name, "r");
    if (!file)
        return wrong("%s: %s", name, strerror(errno));
    int known;
    Line *lines = read_lines(file, name, &known);
    fclose(file);
    bool all = lines != NULL;
    for (int rank = 0; rank < ranks && all; rank++) {
        const char *host = hosts + (size_t)rank * HOST_NAME;
        int i = 0;
        while (i < known && strcmp(lines[i].host, host))
            i++;
        if (i < known)
            site[rank] = lines[i].number;
        else
            all = wrong("%s does not name host %s of rank %d", name, host, rank);
    }
    free(lines);
    return all;
}
