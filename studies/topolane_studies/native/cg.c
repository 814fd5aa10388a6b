/* CG: products of a sparse matrix on a grid of ranks, as many columns as rows or twice as many, summed over rows
 * and sent across the diagonal. Where there are twice as many, two neighbours share the work on a row's piece.
 */
#include "kernels.h"

static const int ORDER[CLASSES] = {1400, 7000, 14000, 75000, 150000, 1500000};
static const int NONZERO[CLASSES] = {7, 8, 11, 13, 15, 21};
enum { STEPS = 25 };

struct grid {
  int rows, columns, square;
};

static struct grid laid_out(void)
{
  int rows = 1;
  while (4 * rows * rows <= ranks)
    rows *= 2;
  return (struct grid){rows, ranks / rows, rows * rows == ranks};
}

/* Points of a row's vector that a rank holds. */
static int piece(const struct grid *grid, int order, int rank)
{
  const int length = share(order, grid->rows, rank / grid->columns);
  return grid->square ? length : (length + 1 - rank % 2) / 2;
}

/* The rank across the diagonal; where there are two columns to a row, of the same side. */
static int across(const struct grid *grid)
{
  const int each = grid->square ? 1 : 2, at = me / each;
  return each * (at % grid->rows * grid->rows + at / grid->rows) + me % each;
}

static void exchange(int partner, double sent, double received, int tag)
{
  post_receive(partner, received * DOUBLE, tag);
  post_send(partner, sent * DOUBLE, tag);
  wait_all();
}

/* Sums up a few numbers over the row: exchanges over its hypercube. */
static void sum(double numbers)
{
  const struct grid grid = laid_out();
  for (int half = grid.columns / 2; half > 0; half /= 2)
    exchange(me ^ half, numbers, numbers, 0);
}

static void product(int order, double operations)
{
  const struct grid grid = laid_out();
  const int length = share(order, grid.rows, me / grid.columns), mine = piece(&grid, order, me), to = across(&grid);
  compute(operations);
  for (int half = grid.columns / 2; half > 0; half /= 2)
    exchange(me ^ half, half == 1 && !grid.square ? length - mine : mine, mine, 0);
  if (to != me)
    exchange(to, mine, piece(&grid, order, to), 1);
}

/* An outer iteration: 25 steps of the solver, the residual, two norms. */
void cg(int class)
{
  const double order = ORDER[class], entries = NONZERO[class] * (NONZERO[class] + 1.0);
  const double products = 2 * order * entries / ranks, vectors = 2 * order * 5 / ranks;
  sum(1);
  for (int step = 0; step < STEPS; step++) {
    product(ORDER[class], products);
    sum(1);
    compute(vectors);
    sum(1);
  }
  product(ORDER[class], products);
  sum(1);
  compute(2 * order * 6 / ranks);
  sum(2);
}
