/* Permanent site maps, from TOPOLANE_MPI_SITES. */
#ifndef TOPOLANE_MPI_STATIC_MAP_H
#define TOPOLANE_MPI_STATIC_MAP_H

#include "two_level.h"

/* Bytes for the name of a host, which MPI_Gather takes from every rank. */
enum { HOST_NAME = 256 };

/* Whether a value lists sites by rank ("0,0,1,1") and is not the name of a file of hosts. */
bool is_list(const char *value);

/* Fill in the site of every rank. Return false after printing to stderr what is wrong with the value. */
bool sites_of_list(const char *value, int ranks, uint16_t *site);
bool sites_of_file(const char *name, int ranks, const char *hosts, uint16_t *site);

#endif
