/* LU: wavefronts over a grid of pencils, forwards and back; x is the longer side, if one is. */
#include "kernels.h"

static const int POINTS[CLASSES] = {12, 33, 64, 102, 162, 408};
enum { UNKNOWNS = 5 };

static int side(int axis)
{
  int log = 0;
  while (1 << log < ranks)
    log++;
  return 1 << (axis == 0 ? log - log / 2 : log / 2);
}

/* The rank before (-1) or after (+1) along x (0) or y (1), or -1 at the edge. */
static int neighbour(int axis, int direction)
{
  const int x = side(0), place = (axis == 0 ? me % x : me / x) + direction;
  return place < 0 || place >= side(axis) ? -1 : me + direction * (axis == 0 ? 1 : x);
}

/* Points of my width across an axis, without the domain's boundary if `inner`. */
static int width(int axis, int points, int inner)
{
  const int x = side(0), other = axis == 0 ? me / x : me % x, of = side(1 - axis);
  return share(points, of, other) - (inner ? (other == 0) + (other == of - 1) : 0);
}

/* Every inner plane: a message from each neighbour the wave comes from, and one to each it goes to. */
static void sweep(int points, int direction, double operations)
{
  for (int plane = 1; plane < points - 1; plane++) {
    for (int axis = 0; axis < 2; axis++)
      if (neighbour(axis, -direction) >= 0)
        post_receive(neighbour(axis, -direction), UNKNOWNS * DOUBLE * width(axis, points, 1), axis);
    wait_all();
    compute(operations / (points - 2));
    for (int axis = 0; axis < 2; axis++)
      if (neighbour(axis, direction) >= 0)
        post_send(neighbour(axis, direction), UNKNOWNS * DOUBLE * width(axis, points, 1), axis);
  }
  wait_all();
}

/* Two layers of my faces across an axis: first to all those after, then to all those before. */
static void exchange(int points, int axis)
{
  const double bytes = 2.0 * UNKNOWNS * DOUBLE * width(axis, points, 0) * points;
  for (int direction = 1; direction > -2; direction -= 2) {
    if (neighbour(axis, -direction) >= 0)
      post_receive(neighbour(axis, -direction), bytes, 2);
    if (neighbour(axis, direction) >= 0)
      post_send(neighbour(axis, direction), bytes, 2);
    wait_all();
  }
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
