#define _GNU_SOURCE
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *whole_file(const char *path, size_t most, char **text, size_t *length)
{
    struct stat facts;
    char *why = NULL;
    /* Open without blocking, because a pipe may never get a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
    *text = NULL;
    errno = file ? 0 : errno;
    if (!file || fstat(fileno(file), &facts))
        why = strerror(errno);
    else if (!S_ISREG(facts.st_mode) || (size_t)facts.st_size > most)
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
    else if (descriptor >= 0)
        close(descriptor);
    if (!why)
        return NULL;
    free(*text);
    *text = NULL;
    char *sentence = NULL;
    return asprintf(&sentence, "%s: %s", path, why) < 0 ? strdup("no memory") : sentence;
}

uint32_t crc_of(const char *bytes, size_t length)
{
    uint32_t table[256], crc = UINT32_MAX;
    for (uint32_t byte = 0; byte < 256; byte++) {
        table[byte] = byte;
        for (int bit = 0; bit < 8; bit++)
            table[byte] = table[byte] >> 1 ^ (table[byte] & 1 ? UINT32_C(0xedb88320) : 0);
    }
    for (size_t index = 0; index < length; index++)
        crc = crc >> 8 ^ table[(crc ^ (unsigned char)bytes[index]) & 0xff];
    return ~crc;
}
