/* A team of threads of one process. */
#ifndef WITH_MPI
#include "team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int size;
    atomic_int arrived, next_task;
    atomic_uint turn;
    atomic_bool late;
    bool answer;
    double met;
    pthread_mutex_t lock;
    pthread_cond_t all_there;
    const Options *options;
    void (*body)(Member *, const Options *);
} team = {.lock = PTHREAD_MUTEX_INITIALIZER, .all_there = PTHREAD_COND_INITIALIZER};

static void let_go(unsigned turn)
{
    team.answer = atomic_exchange(&team.late, false);
    team.met = now();
    atomic_store(&team.arrived, 0);
    pthread_mutex_lock(&team.lock);
    atomic_store(&team.turn, turn + 1);
    pthread_cond_broadcast(&team.all_there);
    pthread_mutex_unlock(&team.lock);
}

static void block(Member *member, unsigned turn)
{
    leave_core(member);
    pthread_mutex_lock(&team.lock);
    while (atomic_load(&team.turn) == turn)
        pthread_cond_wait(&team.all_there, &team.lock);
    pthread_mutex_unlock(&team.lock);
    enter_core(member);
}

bool meet(Member *member, bool late, bool spin)
{
    const unsigned turn = atomic_load(&team.turn);
    if (late)
        atomic_store(&team.late, true);
    if (atomic_fetch_add(&team.arrived, 1) + 1 == team.size)
        let_go(turn);
    else if (!spin)
        block(member, turn);
    while (atomic_load(&team.turn) == turn)
        spin_on(member);
    return team.answer;
}

double met_at(void)
{
    return team.met;
}

void put_tasks(void)
{
    atomic_store(&team.next_task, 0);
}

int take_task(void)
{
    return atomic_fetch_add(&team.next_task, 1);
}

static void *started(void *member)
{
    team.body(member, team.options);
    return NULL;
}

static const char *run_threads(Member *members, pthread_t *threads)
{
    for (int me = 1; me < team.size; me++)
        if (pthread_create(&threads[me], NULL, started, &members[me]) != 0)
            return "cannot be started";
    started(&members[0]);
    for (int me = 1; me < team.size; me++)
        pthread_join(threads[me], NULL);
    return NULL;
}

int run_team(Options *options, void (*body)(Member *, const Options *))
{
    team.size = (int)options->threads;
    team.options = options;
    team.body = body;
    if (options->rate == 0)
        options->rate = measured_rate();
    set_rate(options->rate, options->xen_clock, options->trace != NULL);
    Files files = {0};
    if (!open_files(&files, options))
        return 2;
    Member *members = calloc((size_t)team.size, sizeof *members);
    pthread_t *threads = calloc((size_t)team.size, sizeof *threads);
    if (members == NULL || threads == NULL)
        return refuse("threads", "no memory");
    for (int me = 0; me < team.size; me++)
        members[me].me = me;
    const char *why = run_threads(members, threads);
    if (why != NULL)
        return refuse("threads", why);
    for (int me = 0; me < team.size; me++)
        write_lines(&files, me, &members[me].log, &members[me].trace, options);
    return close_files(&files, options) ? 0 : 2;
}
#endif
