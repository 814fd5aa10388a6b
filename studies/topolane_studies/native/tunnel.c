/* What a message costs in a tunnel between sites: as much as some more bytes. */
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>

static double extra, eager;
static int *site; /* of every rank of the program, or NULL */

/* TOPOLANE_TUNNEL: the extra bytes of a message, bytes of the largest that is not asked for, the site of every rank of
 * all programs. */
void read_tunnel(int first_rank)
{
  const char *text = getenv("TOPOLANE_TUNNEL");
  int read = 0, place = 0;
  if (!text || sscanf(text, "%lf %lf%n", &extra, &eager, &read) != 2)
    return;
  site = calloc((size_t)ranks, sizeof *site);
  for (text += read; site && sscanf(text, "%d%n", &place, &read) == 1; text += read, first_rank--)
    if (first_rank <= 0 && -first_rank < ranks)
      site[-first_rank] = place;
}

double in_tunnel(int peer, double bytes)
{
  if (!site || site[peer] == site[me])
    return 0;
  return bytes > eager ? 3 * extra : extra; /* asked for, answered, sent */
}
