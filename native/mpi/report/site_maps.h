/* Site maps from a receiver. */
#ifndef TOPOLANE_SITE_MAPS_H
#define TOPOLANE_SITE_MAPS_H

#include <stddef.h>

/* Publishes the map in a SITES frame, if it is for this program's ranks. */
void site_map_heard(const unsigned char *payload, size_t length);

#endif
