/* Plays the traffic of several jobs: each first alone, then all at once.
 *
 * play FILE: tokens apart by blanks. JOBS; for every job the seconds to communicate for and its
 * ranks; then for every job the number of its messages and for each from, to (ranks of the job) and
 * bytes. The ranks of the jobs are those of MPI_COMM_WORLD, one job after the other.
 *
 * An iteration sends every message once, without waiting in between (MPI_Isend, MPI_Irecv,
 * MPI_Waitall), and ends when all of them have arrived. Prints for every job the seconds of an
 * iteration alone and while the others run, which communicate for the whole of that time.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct message {
  int peer;
  int bytes;
};

struct part {
  int job, rank, sends, receives;
  double seconds; /* to communicate for */
  struct message *send, *receive;
  MPI_Comm comm;
};

static void must(int there)
{
  if (!there) {
    fprintf(stderr, "play: the file does not read\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void add(struct message **list, int *count, int peer, double bytes)
{
  *list = realloc(*list, (*count + 1) * sizeof **list);
  (*list)[*count].peer = peer;
  (*list)[(*count)++].bytes = (int)bytes;
}

static int read_part(const char *name, int me, struct part *mine)
{
  FILE *file = fopen(name, "r");
  int jobs, first = 0;
  must(file != NULL && fscanf(file, "%d", &jobs) == 1);
  for (int job = 0; job < jobs; job++) {
    int ranks;
    double seconds;
    must(fscanf(file, "%lf %d", &seconds, &ranks) == 2);
    if (me >= first && me < first + ranks) {
      mine->job = job;
      mine->rank = me - first;
      mine->seconds = seconds;
    }
    first += ranks;
  }
  for (int job = 0; job < jobs; job++) {
    int messages;
    must(fscanf(file, "%d", &messages) == 1);
    for (int i = 0; i < messages; i++) {
      int from, to;
      double bytes;
      must(fscanf(file, "%d %d %lf", &from, &to, &bytes) == 3);
      if (job == mine->job && from == mine->rank)
        add(&mine->send, &mine->sends, to, bytes);
      if (job == mine->job && to == mine->rank)
        add(&mine->receive, &mine->receives, from, bytes);
    }
  }
  fclose(file);
  return jobs;
}

static void iterate(const struct part *mine, char *buffer, MPI_Request *requests)
{
  int n = 0;
  for (int i = 0; i < mine->receives; i++)
    MPI_Irecv(buffer, mine->receive[i].bytes, MPI_BYTE, mine->receive[i].peer, 0, mine->comm, &requests[n++]);
  for (int i = 0; i < mine->sends; i++)
    MPI_Isend(buffer, mine->send[i].bytes, MPI_BYTE, mine->send[i].peer, 0, mine->comm, &requests[n++]);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* Mean seconds of an iteration over at least the given seconds. */
static double play(const struct part *mine, char *buffer, MPI_Request *requests)
{
  double begin = MPI_Wtime(), now;
  int iterations = 0;
  do {
    iterate(mine, buffer, requests);
    iterations++;
    double here = MPI_Wtime();
    MPI_Allreduce(&here, &now, 1, MPI_DOUBLE, MPI_MAX, mine->comm);
  } while (now - begin < mine->seconds);
  return (now - begin) / iterations;
}

int main(int argc, char **argv)
{
  struct part mine = {0};
  int me, largest = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  must(argc == 2);
  const int jobs = read_part(argv[1], me, &mine);
  MPI_Comm_split(MPI_COMM_WORLD, mine.job, me, &mine.comm);
  for (int i = 0; i < mine.sends; i++)
    largest = mine.send[i].bytes > largest ? mine.send[i].bytes : largest;
  for (int i = 0; i < mine.receives; i++)
    largest = mine.receive[i].bytes > largest ? mine.receive[i].bytes : largest;
  char *buffer = malloc(largest); /* its content does not matter, so all messages share it */
  MPI_Request *requests = malloc((mine.sends + mine.receives + 1) * sizeof *requests);
  double alone = 0;
  for (int job = 0; job < jobs; job++) {
    if (job == mine.job)
      alone = play(&mine, buffer, requests);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  const double together = play(&mine, buffer, requests);
  if (mine.rank == 0)
    printf("job %d %.12g %.12g\n", mine.job, alone, together);
  MPI_Finalize();
  return 0;
}
