/* What a rank sends to whom, and how often it waits for an answer. */
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
  long messages, turns;
  double bytes;
  int waits; /* something was sent since the last that came */
} *peers;

static int watched(void)
{
  if (!peers && getenv("TOPOLANE_COUNTS"))
    peers = calloc((size_t)ranks, sizeof *peers);
  return peers != NULL;
}

void count_sent(int to, double bytes)
{
  if (!watched())
    return;
  peers[to].messages++;
  peers[to].bytes += (double)(long)bytes;
  peers[to].waits = 1;
}

void count_received(int from)
{
  if (!watched() || !peers[from].waits)
    return;
  peers[from].turns++;
  peers[from].waits = 0;
}

void print_counts(void)
{
  for (int peer = 0; watched() && peer < ranks; peer++)
    if (peers[peer].messages > 0 || peers[peer].turns > 0)
      printf("sent %d %d %ld %.0f %ld\n", me, peer, peers[peer].messages, peers[peer].bytes, peers[peer].turns);
}
