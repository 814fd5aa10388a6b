/* Complaints, the log and the trace. */
#include "team.h"

#include <errno.h>
#include <string.h>

enum { LONGEST = 4096 };

int refuse(const char *what, const char *why)
{
    fprintf(stderr, "work: %s: %s\n", what, why);
    return 2;
}

/* Where a file is written until it is whole. */
static bool draft_of(char *draft, const char *name)
{
    return snprintf(draft, LONGEST, "%s.part", name) < LONGEST;
}

static FILE *opened(const char *name)
{
    char draft[LONGEST];
    FILE *file = NULL;
    errno = ENAMETOOLONG;
    if (draft_of(draft, name))
        file = fopen(draft, "w");
    if (file == NULL)
        refuse(name, strerror(errno));
    return file;
}

bool open_files(Files *files, const Options *options)
{
    files->log = options->log != NULL ? opened(options->log) : stdout;
    files->trace = options->trace != NULL ? opened(options->trace) : NULL;
    return files->log != NULL && (options->trace == NULL || files->trace != NULL);
}

void write_lines(Files *files, int thread, const Lines *log, const Lines *trace, const Options *options)
{
    for (const Line *line = log->lines; line < log->lines + log->count; line++) {
        fprintf(files->log, "%d %.6f %.6f", thread, line->start, line->end);
        if (options->xen_clock)
            fprintf(files->log, " %.6f %.6f %.6f %.6f %.6f %.6f %.6f", line->before.time, line->before.ran,
                    line->after.time, line->after.ran, line->after.since, line->due, line->ahead);
        else if (options->kind == COEVP)
            fprintf(files->log, " %d", line->number);
        fputc('\n', files->log);
    }
    for (const Line *line = trace->lines; files->trace != NULL && line < trace->lines + trace->count; line++)
        fprintf(files->trace, "%d %d %.6f %.6f\n", thread, line->number, line->start, line->end);
}

static bool closed(FILE *file, const char *name)
{
    char draft[LONGEST];
    bool whole = ferror(file) == 0;
    whole = fclose(file) == 0 && whole;
    if (name == NULL)
        name = "standard output";
    else
        whole = whole && draft_of(draft, name) && rename(draft, name) == 0;
    if (!whole)
        refuse(name, strerror(errno));
    return whole;
}

bool close_files(Files *files, const Options *options)
{
    const bool log = closed(files->log, options->log);
    return (files->trace == NULL || closed(files->trace, options->trace)) && log;
}
