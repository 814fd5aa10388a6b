/* The ranks of a window's group are kept in an attribute of the window, which is made when the window is
 * first used. */
#include "windows.h"

#include <pthread.h>
#include <stdlib.h>

#include "communicator.h"
#include "counts.h"

typedef struct {
    int size, *world;
} Group;

static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static int on_free(MPI_Win window, int key, void *value, void *extra)
{
    (void)window, (void)key, (void)extra;
    free(((Group *)value)->world);
    free(value);
    return MPI_SUCCESS;
}

bool windows_open(void)
{
    return PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_free, &keyval, NULL) == MPI_SUCCESS;
}

static Group *make(MPI_Win window)
{
    Group *made = NULL;
    MPI_Group group;
    int found = 0;
    pthread_mutex_lock(&making);
    if (PMPI_Win_get_attr(window, keyval, &made, &found) == MPI_SUCCESS && !found &&
        (made = calloc(1, sizeof *made)) && PMPI_Win_get_group(window, &group) == MPI_SUCCESS) {
        PMPI_Group_size(group, &made->size);
        made->world = world_ranks(group, made->size);
        if (!made->world || PMPI_Win_set_attr(window, keyval, made) != MPI_SUCCESS) {
            free(made->world);
            free(made);
            made = NULL;
        }
    }
    pthread_mutex_unlock(&making);
    return made;
}

int window_rank(MPI_Win window, int target)
{
    Group *group = NULL;
    int found = 0;
    if (target < 0 || keyval == MPI_KEYVAL_INVALID ||
        PMPI_Win_get_attr(window, keyval, &group, &found) != MPI_SUCCESS || (!found && !(group = make(window))))
        return -1;
    return target < group->size ? group->world[target] : -1;
}
