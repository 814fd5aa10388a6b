#include "exchange.h"
#include "buffers.h"

#include <limits.h>
#include <stdlib.h>

enum { TAG = 1 };

void exchange_begin(Exchange *exchange, Levels *levels, int most)
{
    exchange->levels = levels;
    exchange->posted = 0;
    exchange->requests = malloc((size_t)(most + 1) * sizeof *exchange->requests);
    exchange->from = malloc((size_t)(most + 1) * sizeof *exchange->from);
    exchange->result = exchange->requests && exchange->from ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Posts one message. A count above INT_MAX becomes one element of a type that holds so many. */
static void post(Exchange *exchange, int rank, bool sends, void *buffer, MPI_Count count, MPI_Datatype type)
{
    MPI_Datatype many = MPI_DATATYPE_NULL;
    if (exchange->result == MPI_SUCCESS && count > INT_MAX) {
        exchange->result = type_repeated(count, type, &many);
        type = many;
        count = 1;
    }
    if (exchange->result == MPI_SUCCESS) {
        MPI_Request *request = &exchange->requests[exchange->posted];
        MPI_Comm comm = exchange->levels->whole;
        exchange->result = sends ? PMPI_Isend(buffer, (int)count, type, rank, TAG, comm, request)
                                 : PMPI_Irecv(buffer, (int)count, type, rank, TAG, comm, request);
    }
    if (exchange->result == MPI_SUCCESS)
        exchange->from[exchange->posted++] = sends ? -1 : rank;
    if (many != MPI_DATATYPE_NULL)
        PMPI_Type_free(&many);
}

void exchange_send(Exchange *exchange, int rank, const void *buffer, MPI_Count count, MPI_Datatype type)
{
    const Levels *levels = exchange->levels;
    size_t bytes = 0;
    post(exchange, rank, true, (void *)buffer, count, type);
    if (exchange->result == MPI_SUCCESS && rank != levels->rank && data_bytes(count, type, &bytes))
        count_sent(levels->world[rank], COLLECTIVE_COUNTED, 1, bytes);
}

void exchange_receive(Exchange *exchange, int rank, void *buffer, MPI_Count count, MPI_Datatype type)
{
    post(exchange, rank, false, buffer, count, type);
}

/* Only the thread of the running collective uses the private communicator, so nobody takes the message away. */
MPI_Count exchange_probe(Exchange *exchange, int rank)
{
    MPI_Status status;
    int count = -1;
    MPI_Count bytes = -1;
    if (exchange->result == MPI_SUCCESS)
        exchange->result = PMPI_Probe(rank, TAG, exchange->levels->whole, &status);
    if (exchange->result == MPI_SUCCESS)
        exchange->result = PMPI_Get_count(&status, MPI_BYTE, &count);
    if (exchange->result == MPI_SUCCESS && count == MPI_UNDEFINED) /* more than an int holds */
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

static int wait_all(Exchange *exchange)
{
    MPI_Status *statuses = malloc((size_t)exchange->posted * sizeof *statuses);
    if (!statuses)
        return MPI_ERR_NO_MEM;
    int code = PMPI_Waitall(exchange->posted, exchange->requests, statuses);
    code = first_error(code, statuses, exchange->posted);
    free(statuses);
    for (int i = 0; i < exchange->posted; i++)
        if (exchange->from[i] >= 0 && exchange->from[i] != exchange->levels->rank)
            count_received(exchange->levels->world[exchange->from[i]], COLLECTIVE_COUNTED);
    return code;
}

int exchange_end(Exchange *exchange)
{
    if (exchange->result == MPI_SUCCESS && exchange->posted)
        exchange->result = wait_all(exchange);
    else /* what the error left unmatched would be waited for in vain */
        for (int i = 0; i < exchange->posted; i++)
            PMPI_Request_free(&exchange->requests[i]);
    free(exchange->requests);
    free(exchange->from);
    exchange->requests = NULL;
    exchange->from = NULL;
    exchange->posted = 0;
    return exchange->result;
}
