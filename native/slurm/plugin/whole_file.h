#ifndef TOPOLANE_WHOLE_FILE_H
#define TOPOLANE_WHOLE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The most bytes of each kind of file, because slurmctld waits while it reads one. The Python code has the same limits. */
enum { MOST_CONFIG = 1 << 20, MOST_LINKS = 32 << 20, MOST_LINKS_OUT = 64 << 20, MOST_MACHINE = 256 << 20, MOST_LIBRARY = 256 << 20 };

/* Reads a file of at most `most` bytes and appends a zero byte. Returns NULL, or a sentence; the caller frees text and
 * sentence. */
char *whole_file(const char *path, size_t most, char **text, size_t *length);

/* The checksum of some bytes, equal to zlib's crc32, which is fast in Python even for a large library. */
uint32_t crc_of(const char *bytes, size_t length);

#endif
