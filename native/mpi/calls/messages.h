/* The calls with a count: included once for int and once for MPI_Count. */

#define SEND(name)                                                                                              \
    ON_OWN_STACK(NAME(name), REAL(name), 6)                                                                     \
    EXPORT int NAME(name)(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm)   \
    {                                                                                                           \
        WATCH(CALL_##name, REAL(name)(buffer, count, type, to, tag, comm), bytes = sent(comm, to, count, type)); \
    }
SEND(Send)
SEND(Ssend)
SEND(Bsend)
SEND(Rsend)
#undef SEND

#define SEND(name)                                                                                              \
    ON_OWN_STACK(NAME(name), REAL(name), 7)                                                                     \
    EXPORT int NAME(name)(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm,   \
                          MPI_Request *request)                                                                 \
    {                                                                                                           \
        WATCH(CALL_##name, REAL(name)(buffer, count, type, to, tag, comm, request),                             \
              bytes = sent(comm, to, count, type));                                                             \
    }
SEND(Isend)
SEND(Issend)
SEND(Ibsend)
SEND(Irsend)
#undef SEND

ON_OWN_STACK(NAME(Recv), REAL(Recv), 7)
EXPORT int NAME(Recv)(void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Status *status)
{
    SOURCE_KNOWN(from, status);
    WATCH(CALL_Recv, REAL(Recv)(buffer, count, type, from, tag, comm, status), received(comm, from, status));
}

ON_OWN_STACK(NAME(Irecv), REAL(Irecv), 7)
EXPORT int NAME(Irecv)(void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                       MPI_Request *request)
{
    WATCH(CALL_Irecv, REAL(Irecv)(buffer, count, type, from, tag, comm, request),
          hold(request_key(*request), receive_begun(comm, from)));
}

ON_OWN_STACK(NAME(Sendrecv), REAL(Sendrecv), 12)
EXPORT int NAME(Sendrecv)(const void *out, COUNT out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                          COUNT in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                          MPI_Status *status)
{
    SOURCE_KNOWN(from, status);
    WATCH(CALL_Sendrecv,
          REAL(Sendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status),
          bytes = sent(comm, to, out_count, out_type);
          received(comm, from, status));
}

ON_OWN_STACK(NAME(Sendrecv_replace), REAL(Sendrecv_replace), 9)
EXPORT int NAME(Sendrecv_replace)(void *buffer, COUNT count, MPI_Datatype type, int to, int out_tag, int from,
                                  int in_tag, MPI_Comm comm, MPI_Status *status)
{
    SOURCE_KNOWN(from, status);
    WATCH(CALL_Sendrecv_replace,
          REAL(Sendrecv_replace)(buffer, count, type, to, out_tag, from, in_tag, comm, status),
          bytes = sent(comm, to, count, type);
          received(comm, from, status));
}

#if NONBLOCKING_SENDRECV
ON_OWN_STACK(NAME(Isendrecv), REAL(Isendrecv), 12)
EXPORT int NAME(Isendrecv)(const void *out, COUNT out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                           COUNT in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                           MPI_Request *request)
{
    WATCH(CALL_Isendrecv,
          REAL(Isendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, request),
          bytes = sent(comm, to, out_count, out_type);
          hold(request_key(*request), receive_begun(comm, from)));
}

ON_OWN_STACK(NAME(Isendrecv_replace), REAL(Isendrecv_replace), 9)
EXPORT int NAME(Isendrecv_replace)(void *buffer, COUNT count, MPI_Datatype type, int to, int out_tag, int from,
                                   int in_tag, MPI_Comm comm, MPI_Request *request)
{
    WATCH(CALL_Isendrecv_replace,
          REAL(Isendrecv_replace)(buffer, count, type, to, out_tag, from, in_tag, comm, request),
          bytes = sent(comm, to, count, type);
          hold(request_key(*request), receive_begun(comm, from)));
}
#endif

ON_OWN_STACK(NAME(Mrecv), REAL(Mrecv), 5)
EXPORT int NAME(Mrecv)(void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    Value value = take(message_key(*message));
    WATCH(CALL_Mrecv, REAL(Mrecv)(buffer, count, type, message, status), completed(value, NULL));
}

ON_OWN_STACK(NAME(Imrecv), REAL(Imrecv), 5)
EXPORT int NAME(Imrecv)(void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    Value value = take(message_key(*message));
    WATCH(CALL_Imrecv, REAL(Imrecv)(buffer, count, type, message, request), hold(request_key(*request), value));
}
