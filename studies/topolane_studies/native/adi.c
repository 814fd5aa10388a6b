/* BT and SP: a cube solved line by line along each axis, over a multipartition of p^2 ranks with p
 * cells of p^3 each, so that every rank has one cell in every plane and all compute all the time.
 */
#include "kernels.h"

#include <math.h>

static const int POINTS_BT[CLASSES] = {12, 24, 64, 102, 162, 408};
static const int POINTS_SP[CLASSES] = {12, 36, 64, 102, 162, 408};
enum { UNKNOWNS = 5, AXES = 3 };

struct neighbours {
  int before, after;
};

static int side(void)
{
  return (int)lround(sqrt(ranks));
}

static struct neighbours along(int rank, int axis)
{
  const int p = side(), i = rank % p, j = rank / p;
  const int next_i = (i + 1) % p, last_i = (i + p - 1) % p, next_j = (j + 1) % p, last_j = (j + p - 1) % p;
  if (axis == 0)
    return (struct neighbours){last_i + p * j, next_i + p * j};
  if (axis == 1)
    return (struct neighbours){i + p * last_j, i + p * next_j};
  return (struct neighbours){next_i + p * last_j, last_i + p * next_j};
}

/* Where along an axis a cell of a rank lies. */
static int at(int rank, int cell, int axis)
{
  const int p = side();
  return axis == 0 ? (rank % p + cell) % p : axis == 1 ? (rank / p + p - cell) % p : cell;
}

/* Points of a cell's face across an axis, without the domain's boundary if `inner`. */
static double face(int rank, int cell, int axis, int points, int inner)
{
  const int p = side();
  double area = 1;
  for (int other = 0; other < AXES; other++) {
    if (other == axis)
      continue;
    const int place = at(rank, cell, other), edges = (place == 0) + (place == p - 1);
    area *= share(points, p, place) - (inner ? edges : 0);
  }
  return area;
}

/* Points of the faces of a rank's cells that have a neighbour before (-1) or after (+1) them. */
static double surface(int rank, int axis, int direction, int points)
{
  const int p = side();
  double sum = 0;
  for (int cell = 0; cell < p; cell++) {
    const int beyond = at(rank, cell, axis) + direction;
    if (beyond >= 0 && beyond < p)
      sum += face(rank, cell, axis, points, 0);
  }
  return sum;
}

/* Two layers of all cells' faces, one message to each of six neighbours. */
static void copy_faces(int points)
{
  const double numbers = 2.0 * UNKNOWNS * DOUBLE;
  for (int axis = 0; axis < AXES; axis++) {
    const struct neighbours mine = along(me, axis);
    post_receive(mine.before, numbers * surface(mine.before, axis, 1, points), 2 * axis + 1);
    post_receive(mine.after, numbers * surface(mine.after, axis, -1, points), 2 * axis);
  }
  for (int axis = 0; axis < AXES; axis++) {
    const struct neighbours mine = along(me, axis);
    post_send(mine.before, numbers * surface(me, axis, -1, points), 2 * axis);
    post_send(mine.after, numbers * surface(me, axis, 1, points), 2 * axis + 1);
  }
  wait_all();
}

struct system {
  int points;
  double forward, back; /* numbers passed on for a point of a face */
  int largest;          /* all messages as large as for the largest cell */
};

static double passed(const struct system *solved, int axis, int stage, double numbers)
{
  if (solved->largest)
    return numbers * DOUBLE * pow(solved->points / side() + 1, 2);
  int cell = 0;
  while (at(me, cell, axis) != stage)
    cell++;
  return numbers * DOUBLE * face(me, cell, axis, solved->points, 1);
}

/* Lines along one axis: elimination cell by cell, then substitution backwards. Half of the work is
 * setting up a cell's systems while the message of the cell before is under way. */
static void sweep(const struct system *solved, int axis, double operations)
{
  const int p = side();
  const struct neighbours mine = along(me, axis);
  for (int stage = 0; stage < p; stage++) {
    if (stage > 0)
      post_receive(mine.before, passed(solved, axis, stage, solved->forward), 6);
    compute(operations / p / 2);
    wait_all();
    compute(operations / p / 4);
    if (stage < p - 1)
      post_send(mine.after, passed(solved, axis, stage, solved->forward), 6);
  }
  for (int stage = p - 1; stage >= 0; stage--) {
    if (stage < p - 1)
      post_receive(mine.after, passed(solved, axis, stage, solved->back), 7);
    wait_all();
    compute(operations / p / 4);
    if (stage > 0)
      post_send(mine.before, passed(solved, axis, stage, solved->back), 7);
  }
  wait_all();
}

/* A time step: a quarter of the work each for the right-hand side and the three axes. */
static void step(const struct system *solved, double operations)
{
  const double mine = operations / ranks;
  copy_faces(solved->points);
  compute(mine / 4);
  for (int axis = 0; axis < AXES; axis++)
    sweep(solved, axis, mine / 4);
}

void bt(int class)
{
  const double n = POINTS_BT[class];
  const struct system blocks = {POINTS_BT[class], UNKNOWNS * (UNKNOWNS + 1), UNKNOWNS, 1};
  step(&blocks, 3478.8 * n * n * n - 17655.7 * n * n + 28023.7 * n);
}

void sp(int class)
{
  const double n = POINTS_SP[class];
  const struct system scalars = {POINTS_SP[class], 22, 10, 0};
  step(&scalars, 881.174 * n * n * n - 4683.91 * n * n + 11484.5 * n - 19272.4);
}
