#include "levels.h"

#include <stdlib.h>

static bool room(Levels *levels)
{
    size_t ranks = (size_t)levels->size;
    if (!levels->site_of)
        levels->site_of = malloc((5 * ranks + 1) * sizeof *levels->site_of);
    levels->place = levels->site_of + ranks;
    levels->ranks = levels->place + ranks;
    levels->first = levels->ranks + ranks;
    return levels->site_of;
}

/* Numbers the sites by their first rank. */
static bool number(Levels *levels, const SiteMap *map)
{
    int *numbers = malloc(((size_t)UINT16_MAX + 1) * sizeof *numbers);
    if (!numbers)
        return false;
    for (int site = 0; site <= UINT16_MAX; site++)
        numbers[site] = -1;
    levels->sites = 0;
    levels->in_order = true;
    for (int rank = 0; rank < levels->size; rank++) {
        int *number = &numbers[map->site[levels->world[rank]]];
        if (*number < 0)
            *number = levels->sites++;
        levels->site_of[rank] = *number;
        if (rank && *number < levels->site_of[rank - 1])
            levels->in_order = false;
    }
    free(numbers);
    return true;
}

bool levels_sort(Levels *levels, const SiteMap *map)
{
    if (!room(levels) || !number(levels, map))
        return false;
    for (int site = 0; site <= levels->sites; site++)
        levels->first[site] = 0;
    for (int rank = 0; rank < levels->size; rank++)
        levels->place[rank] = levels->first[levels->site_of[rank] + 1]++;
    for (int site = 0; site < levels->sites; site++)
        levels->first[site + 1] += levels->first[site];
    for (int rank = 0; rank < levels->size; rank++)
        levels->ranks[levels->first[levels->site_of[rank]] + levels->place[rank]] = rank;
    levels->site = levels->site_of[levels->rank];
    levels->members = members_of(levels, levels->site);
    int *world = levels->first + levels->size + 1;
    for (int place = 0; place < levels->members; place++)
        world[place] = levels->world[levels->ranks[levels->first[levels->site] + place]];
    levels->own.rank = levels->place[levels->rank];
    levels->own.size = levels->own.peers = levels->members;
    levels->own.world = world;
    return true;
}
