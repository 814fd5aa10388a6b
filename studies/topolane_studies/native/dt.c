/* DT, its graph `black hole`: arrays flow from the sources through comparators of four inputs to one sink. A class of
 * NPB has a graph of its own size; here it is the largest that the ranks hold, with the arrays of the class. */
#include "kernels.h"

static const double SAMPLES[CLASSES] = {1728, 13824, 110592, 884736, 7077888, 56623104};
enum { FIELDS = 4, INPUTS = 4, PER_SAMPLE = 53 }; /* operations of the filter for each sample, counted */

struct layer {
  int first, nodes;
};

/* The layer that takes what a layer sends; the sink is alone in the last. */
static struct layer after(struct layer layer)
{
  const int nodes = layer.nodes > INPUTS ? (layer.nodes + INPUTS - 1) / INPUTS : 1;
  return (struct layer){layer.first + layer.nodes, nodes};
}

static struct layer sources(void)
{
  struct layer widest = {0, INPUTS};
  for (struct layer tried = widest;; tried.nodes *= 2) {
    struct layer last = tried;
    while (last.nodes > 1)
      last = after(last);
    if (last.first >= ranks)
      return widest;
    widest = tried;
  }
}

/* All arrays once through the graph; ranks beyond the sink have nothing to do. */
void dt(int class)
{
  const double bytes = SAMPLES[class] * FIELDS * DOUBLE;
  struct layer before = {0, 0}, mine = sources();
  scratch(bytes);
  while (me >= mine.first + mine.nodes) {
    if (mine.nodes == 1)
      return;
    before = mine;
    mine = after(mine);
  }
  const int place = me - mine.first;
  for (int input = place * INPUTS; input < (place + 1) * INPUTS && input < before.nodes; input++) {
    post_receive(before.first + input, INTEGER, 0);
    post_receive(before.first + input, bytes, 1);
    wait_all();
    compute(SAMPLES[class] * PER_SAMPLE);
  }
  if (mine.nodes == 1)
    return;
  const int next = after(mine).first + place / INPUTS;
  post_send(next, INTEGER, 0);
  post_send(next, bytes, 1);
  wait_all();
}
