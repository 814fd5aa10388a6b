/* Messages, from Fortran. */
#include "fortran.h"

#if FORTRAN_WRAPPERS

FORTRAN(init, (Int code), MPI_Init(NULL, NULL))
FORTRAN(init_thread, (Int required, Int provided, Int code), MPI_Init_thread(NULL, NULL, *required, provided))
FORTRAN(finalize, (Int code), MPI_Finalize())

#define MESSAGE char *buffer, Int count, Int type, Int peer, Int tag, Int comm
#define SENT BUFFER(buffer), *count, TYPE(type), *peer, *tag, COMM(comm)
FORTRAN(send, (MESSAGE, Int code), MPI_Send(SENT))
FORTRAN(ssend, (MESSAGE, Int code), MPI_Ssend(SENT))
FORTRAN(bsend, (MESSAGE, Int code), MPI_Bsend(SENT))
FORTRAN(rsend, (MESSAGE, Int code), MPI_Rsend(SENT))
FORTRAN_REQUEST(isend, (MESSAGE, Int request, Int code), MPI_Isend(SENT, &made))
FORTRAN_REQUEST(issend, (MESSAGE, Int request, Int code), MPI_Issend(SENT, &made))
FORTRAN_REQUEST(ibsend, (MESSAGE, Int request, Int code), MPI_Ibsend(SENT, &made))
FORTRAN_REQUEST(irsend, (MESSAGE, Int request, Int code), MPI_Irsend(SENT, &made))
FORTRAN_REQUEST(send_init, (MESSAGE, Int request, Int code), MPI_Send_init(SENT, &made))
FORTRAN_REQUEST(ssend_init, (MESSAGE, Int request, Int code), MPI_Ssend_init(SENT, &made))
FORTRAN_REQUEST(bsend_init, (MESSAGE, Int request, Int code), MPI_Bsend_init(SENT, &made))
FORTRAN_REQUEST(rsend_init, (MESSAGE, Int request, Int code), MPI_Rsend_init(SENT, &made))
FORTRAN_STATUS(recv, (MESSAGE, Int status, Int code), MPI_Recv(SENT, &known))
FORTRAN_REQUEST(irecv, (MESSAGE, Int request, Int code), MPI_Irecv(SENT, &made))
FORTRAN_REQUEST(recv_init, (MESSAGE, Int request, Int code), MPI_Recv_init(SENT, &made))

#define MESSAGE_OUT_IN                                                                                        \
    char *out, Int out_count, Int out_type, Int to, Int out_tag, char *in, Int in_count, Int in_type, Int from, \
        Int in_tag, Int comm
#define OUT_IN                                                                                         \
    BUFFER(out), *out_count, TYPE(out_type), *to, *out_tag, BUFFER(in), *in_count, TYPE(in_type), *from, \
        *in_tag, COMM(comm)
FORTRAN_STATUS(sendrecv, (MESSAGE_OUT_IN, Int status, Int code), MPI_Sendrecv(OUT_IN, &known))
FORTRAN_STATUS(sendrecv_replace,
               (char *buffer, Int count, Int type, Int to, Int out_tag, Int from, Int in_tag, Int comm, Int status,
                Int code),
               MPI_Sendrecv_replace(BUFFER(buffer), *count, TYPE(type), *to, *out_tag, *from, *in_tag, COMM(comm),
                                    &known))

FORTRAN_STATUS(probe, (Int from, Int tag, Int comm, Int status, Int code),
               MPI_Probe(*from, *tag, COMM(comm), &known))

static int iprobe(Int from, Int tag, Int comm, Int flag, Int status)
{
    MPI_Status known;
    int found = 0, result = MPI_Iprobe(*from, *tag, COMM(comm), &found, &known);
    *flag = found != 0;
    if (result == MPI_SUCCESS && found)
        give_status(status, &known);
    return result;
}
FORTRAN(iprobe, (Int from, Int tag, Int comm, Int flag, Int status, Int code), iprobe(from, tag, comm, flag, status))

static int improbe(Int from, Int tag, Int comm, Int flag, Int message, Int status)
{
    MPI_Status known;
    MPI_Message probed = MPI_MESSAGE_NULL;
    int found = 0, result = MPI_Improbe(*from, *tag, COMM(comm), &found, &probed, &known);
    *flag = found != 0;
    if (result == MPI_SUCCESS && found) {
        *message = PMPI_Message_c2f(probed);
        give_status(status, &known);
    }
    return result;
}
FORTRAN(improbe, (Int from, Int tag, Int comm, Int flag, Int message, Int status, Int code),
        improbe(from, tag, comm, flag, message, status))

static int mprobe(Int from, Int tag, Int comm, Int message, MPI_Status *known)
{
    MPI_Message probed = MPI_MESSAGE_NULL;
    int result = MPI_Mprobe(*from, *tag, COMM(comm), &probed, known);
    if (result == MPI_SUCCESS)
        *message = PMPI_Message_c2f(probed);
    return result;
}
FORTRAN_STATUS(mprobe, (Int from, Int tag, Int comm, Int message, Int status, Int code),
               mprobe(from, tag, comm, message, &known))

static int mrecv(char *buffer, Int count, Int type, Int message, MPI_Status *known)
{
    MPI_Message probed = PMPI_Message_f2c(*message);
    int result = MPI_Mrecv(BUFFER(buffer), *count, TYPE(type), &probed, known);
    *message = PMPI_Message_c2f(probed);
    return result;
}
FORTRAN_STATUS(mrecv, (char *buffer, Int count, Int type, Int message, Int status, Int code),
               mrecv(buffer, count, type, message, &known))

static int imrecv(char *buffer, Int count, Int type, Int message, MPI_Request *made)
{
    MPI_Message probed = PMPI_Message_f2c(*message);
    int result = MPI_Imrecv(BUFFER(buffer), *count, TYPE(type), &probed, made);
    *message = PMPI_Message_c2f(probed);
    return result;
}
FORTRAN_REQUEST(imrecv, (char *buffer, Int count, Int type, Int message, Int request, Int code),
                imrecv(buffer, count, type, message, &made))

#endif
