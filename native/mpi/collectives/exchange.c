#include "exchange.h"
#include "buffers.h"
#include "eager.h"

#include <limits.h>
#include <stdlib.h>

void exchange_begin(Exchange *exchange, Levels *levels, int most)
{
    *exchange = (Exchange){.levels = levels, .room = most + 1};
    exchange->requests = malloc((size_t)(most + 1) * sizeof *exchange->requests);
    exchange->message = malloc((size_t)(most + 1) * sizeof *exchange->message);
    exchange->result = exchange->requests && exchange->message ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Allocates memory for `more` more requests and for a message. */
static void make_room(Exchange *exchange, size_t more)
{
    size_t room = (size_t)exchange->posted + more, messages = (size_t)exchange->messages + 1;
    if (exchange->result != MPI_SUCCESS || (room <= (size_t)exchange->room && messages <= (size_t)exchange->room))
        return;
    room = 2 * (room > messages ? room : messages);
    MPI_Request *requests = realloc(exchange->requests, room * sizeof *requests);
    if (requests)
        exchange->requests = requests;
    Message *message = realloc(exchange->message, room * sizeof *message);
    if (message)
        exchange->message = message;
    if (requests && message)
        exchange->room = (int)room;
    else
        exchange->result = MPI_ERR_NO_MEM;
}

static void post(Exchange *exchange, int rank, bool sends, void *buffer, int count, MPI_Datatype type)
{
    MPI_Request *request = &exchange->requests[exchange->posted];
    MPI_Comm comm = exchange->levels->whole;
    if (exchange->result != MPI_SUCCESS)
        return;
    exchange->result = sends ? PMPI_Isend(buffer, count, type, rank, exchange->levels->tag, comm, request)
                             : PMPI_Irecv(buffer, count, type, rank, exchange->levels->tag, comm, request);
    exchange->posted += exchange->result == MPI_SUCCESS;
}

/* Posts a message as a whole. A count above INT_MAX becomes one element of a type with `count` elements. */
static void post_whole(Exchange *exchange, int rank, bool sends, const Message *message)
{
    MPI_Datatype many;
    if (message->count <= INT_MAX) {
        post(exchange, rank, sends, message->buffer, (int)message->count, message->type);
        return;
    }
    exchange->result = type_repeated(message->count, message->type, &many);
    if (exchange->result == MPI_SUCCESS) {
        post(exchange, rank, sends, message->buffer, 1, many);
        PMPI_Type_free(&many);
    }
}

/* Posts a message in pieces. Data that are not contiguous and in order are packed first. */
static void post_in_pieces(Exchange *exchange, int rank, bool sends, Message *message, size_t bytes)
{
    size_t piece = eager_piece();
    char *data = message->buffer;
    if (!is_plain(message->type)) {
        data = message->packed = malloc(bytes);
        if (!data)
            exchange->result = MPI_ERR_NO_MEM;
        else if (sends)
            exchange->result = pack_bytes(message->buffer, message->count, message->type, data, exchange->levels->whole);
        else
            exchange->result = PMPI_Type_dup(message->type, &message->type);
    }
    make_room(exchange, bytes / piece + 1);
    for (size_t at = 0; at < bytes; at += piece)
        post(exchange, rank, sends, data + at, (int)(bytes - at < piece ? bytes - at : piece), MPI_BYTE);
}

/* Whether a message crosses in pieces. Both ends know its bytes, so both divide it alike. */
static bool in_pieces(const Exchange *exchange, int rank, const Message *message, size_t *bytes)
{
    const Levels *levels = exchange->levels;
    return !exchange->whole && levels->site_of[rank] != levels->site &&
           data_bytes(message->count, message->type, bytes) && *bytes > eager_piece() && *bytes <= MOST_IN_PIECES;
}

static void add(Exchange *exchange, int rank, bool sends, Message message)
{
    size_t bytes;
    if (exchange->result != MPI_SUCCESS)
        return;
    message.first = exchange->posted;
    make_room(exchange, 1);
    if (in_pieces(exchange, rank, &message, &bytes))
        post_in_pieces(exchange, rank, sends, &message, bytes);
    else
        post_whole(exchange, rank, sends, &message);
    message.requests = exchange->posted - message.first;
    if (exchange->messages < exchange->room)
        exchange->message[exchange->messages++] = message;
}

void exchange_send(Exchange *exchange, int rank, const void *buffer, MPI_Count count, MPI_Datatype type)
{
    const Levels *levels = exchange->levels;
    size_t bytes = 0;
    add(exchange, rank, true, (Message){.from = -1, .buffer = (void *)buffer, .count = count, .type = type});
    if (exchange->result == MPI_SUCCESS && rank != levels->rank && data_bytes(count, type, &bytes))
        count_sent(levels->world[rank], COLLECTIVE_COUNTED, !exchange->more, bytes);
}

void exchange_receive(Exchange *exchange, int rank, void *buffer, MPI_Count count, MPI_Datatype type)
{
    bool counts = rank != exchange->levels->rank && !exchange->more;
    add(exchange, rank, false,
        (Message){.counts = counts, .ours = exchange->ours, .from = rank, .buffer = buffer, .count = count, .type = type});
}

/* Only the thread of the running collective uses the private communicator, so no other thread can take the
 * message. */
MPI_Count exchange_probe(Exchange *exchange, int rank)
{
    MPI_Status status;
    int count = -1;
    MPI_Count bytes = -1;
    exchange->whole = true; /* in pieces, only the first piece would be seen */
    if (exchange->result == MPI_SUCCESS)
        exchange->result = PMPI_Probe(rank, exchange->levels->tag, exchange->levels->whole, &status);
    if (exchange->result == MPI_SUCCESS)
        exchange->result = PMPI_Get_count(&status, MPI_BYTE, &count);
    if (exchange->result == MPI_SUCCESS && count == MPI_UNDEFINED) /* too large for an int */
        exchange->result = PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    else
        bytes = count;
    return bytes;
}

static int first_error(int code, const MPI_Status *statuses, int posted)
{
    if (code != MPI_ERR_IN_STATUS)
        return code;
    for (int i = 0; i < posted; i++)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_ERR_PENDING)
            return statuses[i].MPI_ERROR;
    return code;
}

/* Processes a message that has arrived: unpacks and counts it. */
static int taken(const Exchange *exchange, Message *message)
{
    int code = MPI_SUCCESS;
    if (message->counts)
        count_received(exchange->levels->world[message->from], COLLECTIVE_COUNTED);
    if (message->from >= 0 && message->packed) {
        code = unpack_bytes(message->packed, message->buffer, message->count, message->type, exchange->levels->whole);
        PMPI_Type_free(&message->type);
    }
    free(message->packed);
    message->packed = NULL;
    message->from = -1;
    return code;
}

void exchange_wait(Exchange *exchange, int message)
{
    Message *of = &exchange->message[message];
    if (exchange->result != MPI_SUCCESS || !of->requests)
        return;
    MPI_Status *statuses = malloc((size_t)of->requests * sizeof *statuses);
    if (!statuses) {
        exchange->result = MPI_ERR_NO_MEM;
        return;
    }
    int code = PMPI_Waitall(of->requests, exchange->requests + of->first, statuses);
    exchange->result = first_error(code, statuses, of->requests);
    free(statuses);
    if (exchange->result != MPI_SUCCESS)
        return;
    of->requests = 0;
    exchange->result = taken(exchange, of);
}

void abandon_request(Levels *levels, bool may_go_on, MPI_Request *request)
{
    int done = 0;
    if (*request == MPI_REQUEST_NULL || PMPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done)
        return;
    if (!may_go_on && PMPI_Cancel(request) == MPI_SUCCESS) {
        PMPI_Wait(request, MPI_STATUS_IGNORE);
        return;
    }
    PMPI_Request_free(request);
    levels->abandoned = true;
}

/* Abandons all requests before anything is freed, because one abandoned request keeps all memory in use. */
static void abandon(Exchange *exchange)
{
    for (int i = 0; i < exchange->messages; i++) {
        const Message *message = &exchange->message[i];
        bool may_go_on = message->from < 0 || message->ours || message->packed;
        for (int at = 0; at < message->requests; at++)
            abandon_request(exchange->levels, may_go_on, &exchange->requests[message->first + at]);
    }
    for (int i = 0; i < exchange->messages; i++) {
        Message *message = &exchange->message[i];
        if (message->from >= 0 && message->packed && message->requests)
            PMPI_Type_free(&message->type);
        release(exchange->levels, message->packed);
    }
}

int exchange_end(Exchange *exchange)
{
    for (int i = 0; i < exchange->messages; i++)
        exchange_wait(exchange, i);
    if (exchange->result != MPI_SUCCESS)
        abandon(exchange);
    free(exchange->requests);
    free(exchange->message);
    *exchange = (Exchange){.result = exchange->result};
    return exchange->result;
}
