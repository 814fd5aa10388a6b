#ifndef TOPOLANE_WHOLE_FILE_H
#define TOPOLANE_WHOLE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The most bytes of each kind of file. slurmctld waits while it reads one. Python has the same limits. */
enum { MOST_CONFIG = 1 << 20, MOST_LINKS = 32 << 20, MOST_LINKS_OUT = 64 << 20, MOST_MACHINE = 256 << 20, MOST_LIBRARY = 256 << 20 };

/* The content of a file of at most `most` bytes; a zero byte is added. Returns NULL, or a sentence; the caller frees both. */
char *whole_file(const char *path, size_t most, char **text, size_t *length);

/* The checksum of some bytes, as zlib's crc32 has it: Python computes it of a large library at once. */
uint32_t crc_of(const char *bytes, size_t length);

#endif
