#define _GNU_SOURCE
#include "whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 256 << 20 };

char *whole_file(const char *path, char **text, size_t *length)
{
    struct stat facts;
    char *why = NULL;
    FILE *file = fopen(path, "re");
    *text = NULL;
    errno = file ? 0 : errno;
    if (!file || fstat(fileno(file), &facts))
        why = strerror(errno);
    else if (!S_ISREG(facts.st_mode) || facts.st_size > MOST_BYTES)
        why = "not a file of a size that can be read";
    else {
        *length = (size_t)facts.st_size;
        *text = malloc(*length + 1);
        if (!*text || fread(*text, 1, *length, file) != *length)
            why = "cannot be read";
        else
            (*text)[*length] = '\0';
    }
    if (file)
        fclose(file);
    if (!why)
        return NULL;
    free(*text);
    *text = NULL;
    char *sentence = NULL;
    return asprintf(&sentence, "%s: %s", path, why) < 0 ? strdup("no memory") : sentence;
}
