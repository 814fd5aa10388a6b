/* Counts the messages of a model at once, or stores them in a persistent request. */
#include "model.h"

#include <stdlib.h>

static void keep(Persistent *kept, Event event)
{
    if (kept->events == kept->room) {
        int room = kept->room ? 2 * kept->room : 8;
        Event *larger = realloc(kept->event, (size_t)room * sizeof *larger);
        if (!larger)
            return;
        kept->event = larger;
        kept->room = room;
    }
    kept->event[kept->events++] = event;
}

void model_send(const Model *model, int rank, uint64_t bytes)
{
    int peer = model->of->world[rank];
    if (model->kept)
        keep(model->kept, (Event){.peer = peer, .bytes = bytes});
    else
        count_sent(peer, COLLECTIVE_MODELLED, 1, bytes);
}

void model_receive(const Model *model, int rank)
{
    int peer = model->of->world[rank];
    if (model->kept)
        keep(model->kept, (Event){.peer = peer, .received = true});
    else
        count_received(peer, COLLECTIVE_MODELLED);
}

void model_exchange(const Model *model, int rank, uint64_t bytes)
{
    model_send(model, rank, bytes);
    model_receive(model, rank);
}
