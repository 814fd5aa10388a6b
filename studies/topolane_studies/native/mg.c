/* MG: a V-cycle; borders at every level, and ranks that sit out where there are too few points. */
#include "kernels.h"

static const int LEVELS[CLASSES] = {5, 7, 8, 8, 9, 10};
enum { AXES = 3, MOST_LEVELS = 11 };

/* What a rank has along one axis at one level. */
struct line {
  int points; /* of its own */
  int next;   /* ranks from one that takes part to the next */
  int gives;  /* whether its neighbour after it sits out the next coarser level, and it does not */
};

static int side[AXES], stride[AXES];

static void set_up_grid(void)
{
  int log = 0;
  while (1 << log < ranks)
    log++;
  side[0] = 1 << log / 3;
  side[1] = 1 << (log - log / 3) / 2;
  side[2] = ranks / side[0] / side[1];
  stride[0] = 1;
  stride[1] = side[0];
  stride[2] = side[0] * side[1];
}

static int points_at(int at, int axis, int level)
{
  return ((at + 1) << level) / side[axis] - (at << level) / side[axis];
}

/* As `setup` in mg.f: from the finest level down. */
static struct line line_at(int at, int axis, int level, int finest)
{
  struct line here = {0, 1, 0};
  for (int l = finest; l >= level; l--) {
    here.points = points_at(at, axis, l);
    if (here.points == 0 || points_at(at + here.next, axis, l) == 0)
      here.next *= 2;
  }
  here.gives = level > 1 && points_at(at, axis, level - 1) == 1 && points_at(at + here.next, axis, level - 1) == 0;
  return here;
}

static int place(int rank, int axis)
{
  return rank / stride[axis] % side[axis];
}

static int along(int axis, int steps)
{
  const int here = place(me, axis), there = ((here + steps) % side[axis] + side[axis]) % side[axis];
  return me + (there - here) * stride[axis];
}

/* Points of a border across an axis; `whole` with the borders along all other axes, else with those that
 * were received before it. */
static double border(const struct line *mine, int axis, int whole)
{
  double points = 1;
  for (int other = 0; other < AXES; other++)
    if (other != axis)
      points *= mine[other].points + (whole || other < axis ? 2 : 0);
  return points;
}

/* Borders of one level, axis after axis (comm3). */
static void exchange(const struct line *mine)
{
  for (int axis = 0; axis < AXES; axis++)
    if (mine[axis].points == 0)
      return;
  for (int axis = 0; axis < AXES; axis++) {
    const int before = along(axis, -mine[axis].next), after = along(axis, mine[axis].next);
    const double bytes = border(mine, axis, 0) * DOUBLE;
    if (before == me)
      continue;
    post_receive(before, bytes, 1);
    post_receive(after, bytes, 0);
    post_send(after, bytes, 1);
    post_send(before, bytes, 0);
    wait_all();
  }
}

/* Points for those who sat out the level below (comm3_ex). */
static void hand_out(const struct line *mine, int level, int finest)
{
  for (int axis = 0; axis < AXES; axis++) {
    const int before = along(axis, -mine[axis].next), after = along(axis, mine[axis].next);
    const double bytes = border(mine, axis, 1) * DOUBLE;
    if (before == me)
      continue;
    if (line_at(place(before, axis), axis, level, finest).gives)
      post_receive(before, 2 * bytes, 2);
    if (line_at(place(after, axis), axis, level, finest).gives)
      post_receive(after, bytes, 3);
    if (mine[axis].gives) {
      post_send(after, 2 * bytes, 2);
      post_send(before, bytes, 3);
    }
    wait_all();
  }
}

/* 58 operations a point of the finest level; each level has an eighth of the points of the one above. */
void mg(int class)
{
  const int finest = LEVELS[class];
  struct line mine[MOST_LEVELS][AXES] = {0};
  double work[MOST_LEVELS] = {0}; /* between two exchanges */
  set_up_grid();
  double operations = 58.0 * (double)(1L << 3 * finest) * 7 / 8 / ranks;
  for (int level = finest; level > 0; level--, operations /= 8) {
    work[level] = operations / 3;
    for (int axis = 0; axis < AXES; axis++)
      mine[level][axis] = line_at(place(me, axis), axis, level, finest);
  }
  for (int level = finest - 1; level > 0; level--) {
    compute(work[level]);
    exchange(mine[level]); /* the residual, restricted */
  }
  compute(work[1]);
  exchange(mine[1]);
  for (int level = 2; level <= finest; level++) {
    hand_out(mine[level], level, finest);
    for (int round = 0; round < (level < finest ? 2 : 3); round++) {
      compute(work[level]); /* residual, smoother; on the finest level the residual again */
      exchange(mine[level]);
    }
  }
}
