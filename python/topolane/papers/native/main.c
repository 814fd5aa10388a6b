/* kernels NAME CLASS ITERATIONS: prints the seconds of the iterations, from barrier to barrier. */
#include "kernels.h"

#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int me, ranks;

static const struct {
  const char *name;
  void (*iterate)(int class);
} kernels[] = {{"bt", bt}, {"sp", sp}, {"lu", lu}, {"cg", cg}, {"mg", mg}, {"ft", ft}, {"is", is}, {"ep", ep}};

enum { MOST = 64 };
static MPI_Request under_way[MOST];
static int posted;

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

static MPI_Request *another(void)
{
  if (posted == MOST) {
    fprintf(stderr, "kernels: more than %d messages under way\n", MOST);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return &under_way[posted++];
}

void post_send(int to, double bytes, int tag)
{
  MPI_Isend(scratch(1 << 24), (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, another());
}

void post_receive(int from, double bytes, int tag)
{
  MPI_Irecv(scratch(1 << 24), (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, another());
}

void wait_all(void)
{
  MPI_Waitall(posted, under_way, MPI_STATUSES_IGNORE);
  posted = 0;
}

int share(int points, int parts, int place)
{
  return points / parts + (place < points % parts);
}

static int usage(void)
{
  if (me == 0)
    fprintf(stderr, "usage: kernels bt|sp|lu|cg|mg|ft|is|ep S|W|A|B|C|D ITERATIONS, on 4, 16, 64.. ranks\n");
  MPI_Finalize();
  return 2;
}

int main(int argc, char **argv)
{
  const char *classes = "SWABCD";
  int square = 4;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  while (square < ranks)
    square *= 4;
  if (argc != 4 || square != ranks || strlen(argv[2]) != 1 || !strchr(classes, argv[2][0]))
    return usage();
  const int class = (int)(strchr(classes, argv[2][0]) - classes), iterations = atoi(argv[3]);
  void (*iterate)(int) = NULL;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strcmp(argv[1], kernels[i].name) == 0)
      iterate = kernels[i].iterate;
  if (!iterate || iterations < 0)
    return usage();
  scratch(1 << 24);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < iterations; i++)
    iterate(class);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0)
    printf("%.12g\n", MPI_Wtime() - begin);
  MPI_Finalize();
  return 0;
}
