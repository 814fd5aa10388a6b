#include "waiting.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 64 };

bool waiting_open(Waiting *waiting, uint32_t nodes)
{
    *waiting = (Waiting){.words = nodes / BITS + 1};
    waiting->candidates = calloc(WAITING_MOST, waiting->words * sizeof *waiting->candidates);
    return waiting->candidates != NULL;
}

void waiting_close(Waiting *waiting)
{
    free(waiting->candidates);
    *waiting = (Waiting){0};
}

static size_t place_of(const Waiting *waiting, uint32_t job)
{
    size_t place = 0;
    while (place < WAITING_MOST && waiting->jobs[place] != job)
        place++;
    return place;
}

bool waiting_is_due(const Waiting *waiting, uint32_t job, time_t now)
{
    size_t place = place_of(waiting, job);
    return place == WAITING_MOST || now < waiting->list[place].refused ||
           now - waiting->list[place].refused >= WAITING_SECONDS;
}

void waiting_refused(Waiting *waiting, Refused refused, const uint32_t *candidates, size_t count)
{
    if (!waiting->candidates)
        return;
    size_t place = place_of(waiting, refused.job);
    if (place == WAITING_MOST) {
        place = waiting->next;
        waiting->next = (waiting->next + 1) % WAITING_MOST;
    }
    waiting->list[place] = refused;
    waiting->jobs[place] = refused.job;
    uint64_t *bits = &waiting->candidates[place * waiting->words];
    memset(bits, 0, waiting->words * sizeof *bits);
    for (size_t index = 0; index < count; index++)
        if (candidates[index] / BITS < waiting->words)
            bits[candidates[index] / BITS] |= UINT64_C(1) << candidates[index] % BITS;
}

void waiting_forget(Waiting *waiting, uint32_t job)
{
    size_t place = place_of(waiting, job);
    if (place < WAITING_MOST)
        waiting->list[place].job = waiting->jobs[place] = 0;
}
