#include "topolane_mpi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 64 };

/* A ring of maps. `published` is the number of maps so far; the newest is at the index before it. */
static SiteMap kept[KEPT];
static uint64_t published;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sites_publish(const SiteMap *map)
{
    size_t bytes = (size_t)map->ranks * sizeof *map->site;
    uint16_t *site = malloc(bytes ? bytes : 1);
    if (!site)
        return; /* the other ranks will notice that this one lacks the map */
    memcpy(site, map->site, bytes);
    pthread_mutex_lock(&lock);
    SiteMap *place = &kept[published % KEPT];
    free((void *)place->site);
    *place = *map;
    place->site = site;
    published++;
    pthread_mutex_unlock(&lock);
}

/* The newest map is the last received one, not the one with the highest epoch: a manager that lost its
 * state counts epochs from 1 again. */
uint64_t sites_newest(void)
{
    pthread_mutex_lock(&lock);
    uint64_t epoch = published ? kept[(published - 1) % KEPT].epoch : 0;
    pthread_mutex_unlock(&lock);
    return epoch;
}

/* A copy in one block of memory. */
static SiteMap *copy_of(const SiteMap *map)
{
    size_t bytes = (size_t)map->ranks * sizeof *map->site;
    SiteMap *copy = malloc(sizeof *copy + bytes);
    if (!copy)
        return NULL;
    *copy = *map;
    copy->site = memcpy(copy + 1, map->site, bytes);
    return copy;
}

SiteMap *sites_at(uint64_t epoch)
{
    SiteMap *found = NULL;
    bool known = false;
    pthread_mutex_lock(&lock);
    for (uint64_t back = 1; back <= KEPT && back <= published && !known; back++) {
        const SiteMap *map = &kept[(published - back) % KEPT];
        known = map->epoch == epoch;
        if (known)
            found = copy_of(map); /* copy under the lock: afterwards the slot may get another map */
    }
    pthread_mutex_unlock(&lock);
    return found;
}
