#ifndef TOPOLANE_WHOLE_FILE_H
#define TOPOLANE_WHOLE_FILE_H

#include <stddef.h>

/* The content of a file, which a zero byte ends. Returns NULL, or a sentence; the caller frees both. */
char *whole_file(const char *path, char **text, size_t *length);

#endif
