/* FT, IS and EP: nothing but collective operations. */
#include "kernels.h"

#include <math.h>

static const double GRID_FT[CLASSES] = {1 << 18, 1 << 19, 1 << 23, 1 << 25, 1 << 27, 1L << 31};
static const double KEYS[CLASSES] = {1 << 16, 1 << 20, 1 << 23, 1 << 25, 1 << 27, 1L << 31};
static const double PAIRS[CLASSES] = {1 << 24, 1 << 25, 1 << 28, 1 << 30, 1L << 32, 1L << 36};
enum { PER_KEY = 20, PER_PAIR = 100 }; /* operations, estimated: NPB counts keys and pairs only */

/* MPICH sums up few numbers by recursive doubling. */
static void sum(int numbers)
{
  double in[16] = {0}, out[16];
  for (int distance = 1; distance < ranks; distance *= 2) {
    count_sent(me ^ distance, numbers * DOUBLE);
    count_received(me ^ distance);
  }
  MPI_Allreduce(in, out, numbers, MPI_DOUBLE, MPI_SUM, program);
}

/* A time step over slabs: FFTs along two axes, a transpose, those along the third, a checksum. */
void ft(int class)
{
  const double points = GRID_FT[class], block = points / ranks / ranks * 2 * DOUBLE;
  const double mine = points * (5.23518 + 7.21113 * log(points)) / ranks;
  double in[2] = {0}, out[2];
  char *buffer = scratch(2 * block * ranks);
  compute(mine * 2 / 3);
  MPI_Alltoall(buffer, (int)block, MPI_BYTE, buffer + (size_t)block * (size_t)ranks, (int)block, MPI_BYTE, program);
  compute(mine / 3);
  MPI_Reduce(in, out, 2, MPI_DOUBLE, MPI_SUM, 0, program);
}

/* A ranking: bucket sizes, key counts, keys. */
void is(int class)
{
  enum { TEST_KEYS = 5, BUCKETS = 1024 };
  static int sizes[BUCKETS + TEST_KEYS], totals[BUCKETS + TEST_KEYS];
  const int buckets = class == 0 ? BUCKETS / 2 : BUCKETS;
  const double block = KEYS[class] / ranks / ranks * INTEGER, mine = KEYS[class] / ranks * PER_KEY;
  int count[ranks], length[ranks], start[ranks];
  char *buffer = scratch(2 * block * ranks);
  for (int rank = 0; rank < ranks; rank++) {
    length[rank] = (int)block;
    start[rank] = (int)block * rank;
  }
  compute(mine / 2);
  MPI_Allreduce(sizes, totals, buckets + TEST_KEYS, MPI_INT, MPI_SUM, program);
  MPI_Alltoall(start, 1, MPI_INT, count, 1, MPI_INT, program);
  MPI_Alltoallv(buffer, length, start, MPI_BYTE, buffer + (size_t)block * (size_t)ranks, length, start, MPI_BYTE,
                program);
  compute(mine / 2);
}

/* The whole run: random pairs, then three sums. */
void ep(int class)
{
  compute(PAIRS[class] * PER_PAIR / ranks);
  sum(1);
  sum(1);
  sum(10);
}

/* A part of a guest's memory: 16 MiB from each rank of the first half to one of the second. */
void copy(int class)
{
  const double part = 1 << 24;
  (void)class;
  if (me < ranks / 2)
    post_send(me + ranks / 2, part, 0);
  else
    post_receive(me - ranks / 2, part, 0);
  wait_all();
}
