#define _GNU_SOURCE
#include "note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Users cannot write a SystemComment. Text of other plugins or administrators stays before the plugin's own. */
#define OURS "topolane: "
static const char STOCK[] = OURS "not isolated: stock Slurm chose the nodes";

const char *note_reason(Lack lack)
{
    static const char *const reasons[] = {
        [NO_ENGINE] = "the plugin is not active",
        [ENGINE_FAULT] = "the engine failed",
        [ENGINE_LATE] = "the engine took too long",
        [SHARES_CORES] = "the job may share cores with other jobs",
        [UNNAMED_NODES] = "the machine file does not name them",
    };
    return reasons[lack];
}

/* Sets the plugin's own sentence in the comment; NULL removes it. */
static void set(job_record_t *job, const char *sentence)
{
    char *before = job->system_comment, *ours = before ? strstr(before, OURS) : NULL;
    if (sentence ? ours && !strcmp(ours, sentence) : !ours)
        return;
    char *whole = NULL;
    size_t kept = ours ? (size_t)(ours - before) : before ? strlen(before) : 0;
    while (ours && kept && strchr("; ", before[kept - 1]))
        kept--;
    if (sentence)
        whole = xstrdup_printf("%.*s%s%s", (int)kept, before ? before : "", kept ? "; " : "", sentence);
    else if (kept)
        whole = xstrndup(before, kept);
    xfree(job->system_comment);
    job->system_comment = whole;
    last_job_update = time(NULL);
}

void note_waits(job_record_t *job, Lack lack)
{
    char sentence[160];
    snprintf(sentence, sizeof sentence, OURS "the job waits for isolated nodes, because %s", note_reason(lack));
    set(job, sentence);
}

void note_stock(job_record_t *job, Lack lack)
{
    char sentence[160];
    snprintf(sentence, sizeof sentence, "%s, because %s", STOCK, note_reason(lack));
    set(job, sentence);
}

void note_nothing(job_record_t *job)
{
    set(job, NULL);
}

bool note_is_stock(const job_record_t *job)
{
    return job->system_comment && strstr(job->system_comment, STOCK);
}
