/* Describes this rank in its HELLO. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../ticks.h"
#include "report.h"

static const char *given(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* A word that is the same for all ranks of a run and different for other runs. */
static bool program_word(char *word, size_t room)
{
    const char *value = given("TOPOLANE_MPI_PROGRAM"), *step = given("SLURM_STEP_ID");
    if (!value)
        value = given("PMIX_NAMESPACE");
    if (!value)
        value = given("PMI_JOBID");
    if (value)
        snprintf(word, room, "%s", value);
    else if ((value = given("SLURM_JOB_ID")) && step)
        snprintf(word, room, "slurm-%s.%s", value, step);
    return value != NULL;
}

/* Writes a value as a JSON string. White space becomes one space, and any other character that is not
 * printable ASCII a question mark. */
static void quoted(char *text, size_t room, const char *value)
{
    size_t at = 0;
    for (; *value && at + 3 < room; value++) {
        if (isspace((unsigned char)*value)) {
            if (at && text[at - 1] != ' ')
                text[at++] = ' ';
            continue;
        }
        if (*value == '"' || *value == '\\')
            text[at++] = '\\';
        text[at++] = *value >= ' ' && *value <= '~' ? *value : '?';
    }
    text[at] = 0;
}

Frame *hello_frame(int rank, int ranks, const char *mpi)
{
    enum { ROOM = 8192 };
    char program[256], name[256], host[256] = "", token[4096], quoted_program[256], quoted_name[256], library[128];
    uint64_t incarnation = nanoseconds(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
    Frame *frame = program_word(program, sizeof program) ? frame_new(ROOM) : NULL;
    if (!frame)
        return NULL;
    if (getrandom(&incarnation, sizeof incarnation, GRND_NONBLOCK) < 0)
        errno = 0;
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "%s", given("TOPOLANE_MPI_NAME") ? getenv("TOPOLANE_MPI_NAME") : program_invocation_short_name);
    quoted(quoted_program, sizeof quoted_program, program);
    quoted(quoted_name, sizeof quoted_name, name);
    quoted(token, sizeof token, given("TOPOLANE_MPI_TOKEN") ? getenv("TOPOLANE_MPI_TOKEN") : "");
    quoted(library, sizeof library, mpi);
    int length = snprintf((char *)frame->bytes + HEADER, ROOM,
                          "{\"program\": \"%s\", \"name\": \"%s\", \"rank\": %d, \"ranks\": %d, \"host\": \"%s\", "
                          "\"pid\": %ld, \"incarnation\": \"%016llx\", \"library\": \"1\", \"mpi\": \"%s\", "
                          "\"token\": \"%s\"}",
                          quoted_program, quoted_name, rank, ranks, *host ? host : "?", (long)getpid(),
                          (unsigned long long)incarnation, library, token);
    frame_seal(frame, HELLO, 0, (size_t)length);
    return frame;
}
