/* Site maps that a receiver sends. */
#ifndef TOPOLANE_SITE_MAPS_H
#define TOPOLANE_SITE_MAPS_H

#include <stddef.h>

/* Publishes the map of a SITES, if it is one of this program's ranks. */
void site_map_heard(const unsigned char *payload, size_t length);

#endif
