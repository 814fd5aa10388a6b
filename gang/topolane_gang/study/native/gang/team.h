/* What the teams of threads and of ranks share: complaints, and the files. */
#ifndef TEAM_H
#define TEAM_H

#include "work.h"

typedef struct {
    FILE *log, *trace; /* NULL where there is no trace */
} Files;

/* A sentence on standard error; the exit code of bad input. */
int refuse(const char *what, const char *why);

/* Opens what the options name, so that a bad name is known before the work; says what is wrong. */
bool open_files(Files *files, const Options *options);
void write_lines(Files *files, int thread, const Lines *log, const Lines *trace, const Options *options);
/* The files get their names: no reader ever sees half of one. */
bool close_files(Files *files, const Options *options);

#endif
