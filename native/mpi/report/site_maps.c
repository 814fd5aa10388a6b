#include "site_maps.h"

#include <stdlib.h>
#include <string.h>

#include "../counts.h"

void site_map_heard(const unsigned char *payload, size_t length)
{
    struct {
        uint64_t epoch;
        uint32_t ranks, sites;
    } head;
    if (length < sizeof head)
        return;
    memcpy(&head, payload, sizeof head);
    if (length != sizeof head + 2 * (size_t)head.ranks || head.ranks != (uint32_t)counts.ranks)
        return;
    uint16_t *site = malloc(2 * (size_t)head.ranks);
    if (!site)
        return;
    memcpy(site, payload + sizeof head, 2 * (size_t)head.ranks);
    bool sound = head.sites <= UINT16_MAX + 1u;
    for (uint32_t rank = 0; rank < head.ranks; rank++)
        sound &= site[rank] < head.sites;
    if (sound)
        sites_publish(&(SiteMap){head.epoch, (int)head.ranks, (int)head.sites, site});
    free(site);
}
