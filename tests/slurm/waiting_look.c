/* Loaded before the libraries of slurmctld: the plugin's thread waits for Slurm's locks as if another thread held them. FOLDER has
 * the files by which a test and this library speak:
 *
 *   hold     the next thread of the plugin that takes a lock of Slurm waits, and `hold` becomes `waits`
 *   waits    that thread waits as long as this file exists
 *   at-end   slurmctld removes `waits` at its very end, before it removes its pid file, and lets that thread finish
 *   looked   that thread has read Slurm's jobs since
 *   freed    it has freed the lock */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FILE_OF(name) FOLDER "/" name

int slurm_list_for_each_ro(void *list, void *function, void *with);

typedef struct {
    void *(*run)(void *);
    void *with;
} Start;

static __thread bool is_of_plugin, has_waited;
static volatile bool one_waits;

static bool exists(const char *path)
{
    return !access(path, F_OK);
}

static void make(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (file >= 0)
        close(file);
}

static void *begin(void *with)
{
    Start start = *(Start *)with;
    free(with);
    is_of_plugin = true;
    return start.run(start.with);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with)
{
    Dl_info where;
    Start *start = NULL;
    if (dladdr((void *)run, &where) && where.dli_fname && strstr(where.dli_fname, "/topolane/"))
        start = malloc(sizeof *start);
    if (!start)
        return NEXT(pthread_create)(thread, how, run, with);
    *start = (Start){run, with};
    return NEXT(pthread_create)(thread, how, begin, start);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (is_of_plugin && !has_waited && !rename(FILE_OF("hold"), FILE_OF("waits"))) {
        has_waited = one_waits = true;
        while (exists(FILE_OF("waits")))
            usleep(1000);
    }
    return NEXT(pthread_rwlock_rdlock)(lock);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    int result = NEXT(pthread_rwlock_unlock)(lock);
    if (has_waited)
        make(FILE_OF("freed"));
    return result;
}

int slurm_list_for_each_ro(void *list, void *function, void *with)
{
    if (has_waited)
        make(FILE_OF("looked"));
    return NEXT(slurm_list_for_each_ro)(list, function, with);
}

int unlink(const char *path)
{
    if (one_waits && strstr(path, "slurmctld.pid") && exists(FILE_OF("at-end"))) {
        NEXT(unlink)(FILE_OF("waits"));
        while (!exists(FILE_OF("freed")))
            usleep(1000);
    }
    return NEXT(unlink)(path);
}
