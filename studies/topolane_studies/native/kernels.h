/* Programs that send what the NAS Parallel Benchmarks send (docs/reference/traffic.md) and compute as long as
 * their operation counts say. Each has one iteration as a function; ranks are a power of
 * two, of bt and sp a square, of dt at least five.
 */
#ifndef TOPOLANE_KERNELS_H
#define TOPOLANE_KERNELS_H

#include <mpi.h>

enum { DOUBLE = 8, INTEGER = 4 };

/* Of the process, set by main before the first iteration. */
extern int me, ranks;
extern MPI_Comm program;

/* The benchmarks' classes S, W, A, B, C, D. */
enum { CLASSES = 6 };

void bt(int class);
void sp(int class);
void lu(int class);
void cg(int class);
void mg(int class);
void ft(int class);
void is(int class);
void ep(int class);
void dt(int class);

/* Not of NPB: the first half of the ranks each send 16 MiB to one of the second, what a guest's move sends. */
void copy(int class);

/* Computes `operations` floating-point operations. */
void compute(double operations);

/* Messages whose contents do not matter: any number under way, until all have arrived. */
void post_send(int to, double bytes, int tag);
void post_receive(int from, double bytes, int tag);
void wait_all(void);

/* Bytes to add to a message to or from a rank: what it costs in a tunnel between sites, or none. */
void read_tunnel(int first_rank);
double in_tunnel(int peer, double bytes);

/* What was sent to whom, and turns: how often a message came from a peer after one was sent to it. */
void count_sent(int to, double bytes);
void count_received(int from);
void print_counts(void);

/* A buffer of at least `bytes` bytes that is never read; it stays valid until a larger one is wanted. */
char *scratch(double bytes);

/* Points of the place-th of `parts` parts: the first ones have one more. */
int share(int points, int parts, int place);

#endif
