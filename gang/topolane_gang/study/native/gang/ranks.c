/* A team of MPI ranks. */
#ifdef WITH_MPI
#include "team.h"

#include <mpi.h>
#include <stdlib.h>

static const double NAP = 5e-5; /* MPI libraries spin while they wait; who is to block looks and sleeps in turn */

static int *next_task; /* of rank 0 */
static MPI_Win window;

bool meet(Member *member, bool late, bool spin)
{
    int mine = late, any_late = 0, there = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &any_late, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &there, MPI_STATUS_IGNORE);
        if (there)
            return any_late != 0;
        if (spin)
            spin_on(member);
        else
            nap(member, NAP);
    }
}

/* Ranks do not know: no rank counts as late. */
double met_at(void)
{
    return now();
}

void put_tasks(void)
{
    const int none = 0;
    MPI_Accumulate(&none, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, window);
    MPI_Win_flush(0, window);
}

int take_task(void)
{
    const int one = 1;
    int task;
    MPI_Fetch_and_op(&one, &task, MPI_INT, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    return task;
}

static void receive_lines(Lines *lines, int rank)
{
    MPI_Recv(&lines->count, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    lines->lines = malloc((size_t)lines->count * sizeof(Line) + 1);
    if (lines->lines == NULL)
        abort();
    MPI_Recv(lines->lines, lines->count * (int)sizeof(Line), MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_lines(const Lines *lines)
{
    MPI_Send(&lines->count, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Send(lines->lines, lines->count * (int)sizeof(Line), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* Rank 0 writes what all have noted. */
static void write_all(Files *files, Member *member, const Options *options)
{
    if (member->me != 0) {
        send_lines(&member->log);
        send_lines(&member->trace);
        return;
    }
    write_lines(files, 0, &member->log, &member->trace, options);
    for (int rank = 1; rank < (int)options->threads; rank++) {
        Lines log = {0}, trace = {0};
        receive_lines(&log, rank);
        receive_lines(&trace, rank);
        write_lines(files, rank, &log, &trace, options);
        free(log.lines);
        free(trace.lines);
    }
}

int run_team(Options *options, void (*body)(Member *, const Options *))
{
    Member member = {0};
    Files files = {0};
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &member.me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    options->threads = size;
    if (options->rate == 0 && member.me == 0)
        options->rate = measured_rate();
    MPI_Bcast(&options->rate, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    set_rate(options->rate, options->xen_clock, options->trace != NULL);
    int opened = member.me != 0 || open_files(&files, options);
    MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!opened)
        return 2;
    MPI_Win_allocate(sizeof *next_task, sizeof *next_task, MPI_INFO_NULL, MPI_COMM_WORLD, &next_task, &window);
    MPI_Win_lock_all(0, window);
    body(&member, options);
    MPI_Win_unlock_all(window);
    write_all(&files, &member, options);
    MPI_Win_free(&window);
    return member.me != 0 || close_files(&files, options) ? 0 : 2;
}
#endif
