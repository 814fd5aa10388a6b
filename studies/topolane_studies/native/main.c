/* kernels NAME CLASS ITERATIONS RANKS [NAME CLASS ITERATIONS RANKS..]: programs side by side, the first on the
 * first ranks. For each and after each iteration a line: the program from 0 up, iterations, seconds since all
 * began together; the last from barrier to barrier. With TOPOLANE_COUNTS set, first lines `sent FROM TO MESSAGES
 * BYTES TURNS` of the pairs of a single program, and a line `broadcasts CALLS`: it then
 * broadcasts its input at the start. With TOPOLANE_TUNNEL set (tunnel.c) messages between sites are larger.
 */
#include "kernels.h"

#include <math.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int me, ranks;
MPI_Comm program;

enum { INPUTS = 10 };

/* inputs: bytes of each broadcast with which NPB 3.3.1 gives the benchmark's input to all ranks; of those that the study of
 * several sites runs. */
static const struct {
  const char *name;
  void (*iterate)(int class);
  enum { POWER_OF_TWO, SQUARE, EVEN, FIVE } ranks;
  int inputs[INPUTS];
} kernels[] = {{"bt", bt, SQUARE, {4, 8, 12, 4, 4, 4}},
               {"lu", lu, POWER_OF_TWO, {4, 4, 4, 8, 8, 40, 4, 4, 4, 4}},
               {"cg", cg, POWER_OF_TWO, {4}},
               {"mg", mg, POWER_OF_TWO, {4, 4, 4, 4, 4, 32, 4}},
               {"ep", ep, POWER_OF_TWO, {4}},
               {"sp", sp, SQUARE, {0}},
               {"ft", ft, POWER_OF_TWO, {0}},
               {"is", is, POWER_OF_TWO, {0}},
               {"copy", copy, EVEN, {0}},
               {"dt", dt, FIVE, {0}}};

enum { MOST = 64, LARGEST = (1 << 24) + (1 << 16) }; /* the copy of a guest sends 16 MiB at once, and a tunnel adds some */
static MPI_Request under_way[MOST];
static int posted, from_whom[MOST]; /* -1 for what is sent */

void compute(double operations)
{
  smpi_execute_flops(operations);
}

char *scratch(double bytes)
{
  static char *buffer;
  static size_t held;
  if (bytes > (double)held) {
    /* Shared among the ranks and never copied: only the times of messages matter. */
    buffer = SMPI_SHARED_MALLOC((size_t)bytes);
    held = (size_t)bytes;
    if (!buffer) {
      fprintf(stderr, "kernels: no memory for %.0f bytes\n", bytes);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  return buffer;
}

static MPI_Request *another(int from)
{
  if (posted == MOST) {
    fprintf(stderr, "kernels: more than %d messages under way\n", MOST);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  from_whom[posted] = from;
  return &under_way[posted++];
}

void post_send(int to, double bytes, int tag)
{
  count_sent(to, bytes);
  bytes += in_tunnel(to, bytes);
  MPI_Isend(scratch(LARGEST), (int)bytes, MPI_BYTE, to, tag, program, another(-1));
}

void post_receive(int from, double bytes, int tag)
{
  bytes += in_tunnel(from, bytes);
  MPI_Irecv(scratch(LARGEST), (int)bytes, MPI_BYTE, from, tag, program, another(from));
}

void wait_all(void)
{
  MPI_Waitall(posted, under_way, MPI_STATUSES_IGNORE);
  for (int i = 0; i < posted; i++)
    if (from_whom[i] >= 0)
      count_received(from_whom[i]);
  posted = 0;
}

int share(int points, int parts, int place)
{
  return points / parts + (place < points % parts);
}

static int usage(void)
{
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    fprintf(stderr, "usage: kernels bt|sp|lu|cg|mg|ft|is|ep|dt|copy S|W|A|B|C|D ITERATIONS RANKS ..; ranks are a power "
                    "of two, of bt and sp a square, of copy even, of dt at least 5\n");
  MPI_Finalize();
  return 2;
}

static int may_run(int kernel, int on)
{
  const int side = (int)lround(sqrt(on));
  if (on < 1)
    return 0;
  if (kernels[kernel].ranks == POWER_OF_TWO)
    return (on & (on - 1)) == 0;
  if (kernels[kernel].ranks == FIVE)
    return on >= 5;
  return kernels[kernel].ranks == SQUARE ? side * side == on : on % 2 == 0;
}

/* The kernel of that name if it runs on `on` ranks, or -1. */
static int find(const char *name, int on)
{
  for (int i = 0; i < (int)(sizeof kernels / sizeof *kernels); i++)
    if (strcmp(kernels[i].name, name) == 0 && may_run(i, on))
      return i;
  return -1;
}

static void broadcast_inputs(int kernel)
{
  int calls = 0;
  for (; calls < INPUTS && kernels[kernel].inputs[calls]; calls++)
    MPI_Bcast(scratch(LARGEST), kernels[kernel].inputs[calls], MPI_BYTE, 0, program);
  if (me == 0)
    printf("broadcasts %d\n", calls);
}

static void run(int job, int kernel, int class, int iterations)
{
  if (getenv("TOPOLANE_COUNTS"))
    broadcast_inputs(kernel); /* only counted: it would shift when ranks leave the barrier, and so their times */
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 1; i <= iterations; i++) {
    kernels[kernel].iterate(class);
    if (i == iterations)
      MPI_Barrier(program);
    if (me == 0 && i < iterations)
      printf("%d %d %.12g\n", job, i, MPI_Wtime() - begin);
  }
  const double end = MPI_Wtime();
  if (getenv("TOPOLANE_COUNTS")) {
    print_counts();
    MPI_Barrier(program);
  }
  if (me == 0)
    printf("%d %d %.12g\n", job, iterations, end - begin);
}

int main(int argc, char **argv)
{
  const char *classes = "SWABCD", *class = NULL;
  int all, rank, first = 0, mine = 0, begins = 0, kernel = 0, iterations = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  if (argc < 5 || argc % 4 != 1)
    return usage();
  for (int job = 0; 4 * job + 1 < argc; job++) {
    char **of = argv + 4 * job + 1;
    const int on = atoi(of[3]);
    if (find(of[0], on) < 0 || strlen(of[1]) != 1 || !strchr(classes, of[1][0]) || atoi(of[2]) < 0)
      return usage();
    if (rank >= first && rank < first + on) {
      mine = job;
      begins = first;
      kernel = find(of[0], on);
      class = strchr(classes, of[1][0]);
      iterations = atoi(of[2]);
    }
    first += on;
  }
  if (first != all)
    return usage();
  MPI_Comm_split(MPI_COMM_WORLD, mine, rank, &program);
  MPI_Comm_rank(program, &me);
  MPI_Comm_size(program, &ranks);
  read_tunnel(begins);
  run(mine, kernel, (int)(class - classes), iterations);
  MPI_Finalize();
  return 0;
}
