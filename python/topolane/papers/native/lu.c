/* LU: wavefronts over a square of pencils, forwards and back. */
#include "kernels.h"

#include <math.h>

static const int POINTS[CLASSES] = {12, 33, 64, 102, 162, 408};
enum { UNKNOWNS = 5 };

/* The rank before (-1) or after (+1) along x (0) or y (1), or -1 at the edge. */
static int beside(int axis, int direction)
{
  const int p = (int)lround(sqrt(ranks)), place = (axis == 0 ? me % p : me / p) + direction;
  return place < 0 || place >= p ? -1 : me + direction * (axis == 0 ? 1 : p);
}

/* Points of my width across an axis, without the domain's boundary if that is left out. */
static int width(int axis, int points, int inner)
{
  const int p = (int)lround(sqrt(ranks)), other = axis == 0 ? me / p : me % p;
  return share(points, p, other) - (inner ? (other == 0) + (other == p - 1) : 0);
}

/* Every inner plane: a message from each neighbour the wave comes from, and one to each it goes to. */
static void sweep(int points, int direction, double operations)
{
  for (int plane = 1; plane < points - 1; plane++) {
    for (int axis = 0; axis < 2; axis++)
      if (beside(axis, -direction) >= 0)
        post_receive(beside(axis, -direction), UNKNOWNS * DOUBLE * width(axis, points, 1), axis);
    wait_all();
    compute(operations / (points - 2));
    for (int axis = 0; axis < 2; axis++)
      if (beside(axis, direction) >= 0)
        post_send(beside(axis, direction), UNKNOWNS * DOUBLE * width(axis, points, 1), axis);
  }
  wait_all();
}

/* Two layers of my faces across an axis. */
static void exchange(int points, int axis)
{
  const double bytes = 2.0 * UNKNOWNS * DOUBLE * width(axis, points, 0) * points;
  for (int direction = -1; direction < 2; direction += 2)
    if (beside(axis, direction) >= 0) {
      post_receive(beside(axis, direction), bytes, 2);
      post_send(beside(axis, direction), bytes, 2);
    }
  wait_all();
}

/* A time step: a third of the work each for both sweeps and the right-hand side. */
void lu(int class)
{
  const double n = POINTS[class];
  const double mine = (1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144010) / ranks;
  sweep(POINTS[class], 1, mine / 3);
  sweep(POINTS[class], -1, mine / 3);
  exchange(POINTS[class], 0);
  exchange(POINTS[class], 1);
  compute(mine / 3);
}
