/* Persistent messages: included once for int and once for MPI_Count. */

#define SEND_INIT(name)                                                                                         \
    ON_OWN_STACK(NAME(name), REAL(name), 7)                                                                     \
    EXPORT int NAME(name)(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm,   \
                          MPI_Request *request)                                                                 \
    {                                                                                                           \
        MADE(REAL(name)(buffer, count, type, to, tag, comm, request),                                           \
             keep_send(*request, comm, to, bytes_of(count, type)));                                             \
    }
SEND_INIT(Send_init)
SEND_INIT(Ssend_init)
SEND_INIT(Bsend_init)
SEND_INIT(Rsend_init)
#undef SEND_INIT

ON_OWN_STACK(NAME(Recv_init), REAL(Recv_init), 7)
EXPORT int NAME(Recv_init)(void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                           MPI_Request *request)
{
    MADE(REAL(Recv_init)(buffer, count, type, from, tag, comm, request), keep_receive(*request, comm, from));
}
