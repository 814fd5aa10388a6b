/* CG: products of a sparse matrix on a square of ranks, summed over rows and sent across the diagonal. */
#include "kernels.h"

#include <math.h>

static const int ORDER[CLASSES] = {1400, 7000, 14000, 75000, 150000, 1500000};
static const int NONZERO[CLASSES] = {7, 8, 11, 13, 15, 21};
enum { STEPS = 25 };

/* Sums up numbers over the row: exchanges over its hypercube. */
static void sum(double numbers)
{
  const int p = (int)lround(sqrt(ranks));
  for (int half = p / 2; half > 0; half /= 2) {
    const int partner = me / p * p + (me % p ^ half);
    post_receive(partner, numbers * DOUBLE, 0);
    post_send(partner, numbers * DOUBLE, 0);
    wait_all();
  }
}

static void product(int order, double operations)
{
  const int p = (int)lround(sqrt(ranks)), across = me % p * p + me / p;
  compute(operations);
  sum(share(order, p, me / p));
  if (across != me) {
    post_receive(across, (double)share(order, p, across / p) * DOUBLE, 1);
    post_send(across, (double)share(order, p, me / p) * DOUBLE, 1);
    wait_all();
  }
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
