/* Connects, sends and receives without blocking. */
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The index of the address of a name to try: after an address that does not answer, the next one. */
static int turn;

static int begin(int family, const struct sockaddr *address, socklen_t length)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(fd, address, length) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

static int begin_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    return begin(AF_UNIX, (struct sockaddr *)&address, sizeof address);
}

/* Starts a connection to host:port, where a host with colons is in brackets. */
static int begin_tcp(const char *text)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof host)
        return -1;
    bool bracketed = *text == '[' && colon[-1] == ']';
    size_t length = (size_t)(colon - text) - (bracketed ? 2 : 0);
    memcpy(host, text + bracketed, length);
    host[length] = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, colon + 1, &hints, &found))
        return -1;
    int fd = -1, known = 0;
    for (struct addrinfo *one = found; one; one = one->ai_next)
        known++;
    for (int tried = 0; tried < known && fd < 0; tried++) {
        struct addrinfo *one = found;
        for (int at = (turn + tried) % known; at; at--)
            one = one->ai_next;
        fd = begin(one->ai_family, one->ai_addr, one->ai_addrlen);
    }
    freeaddrinfo(found);
    return fd;
}

bool connection_open(Connection *connection, const char *address)
{
    if (!strncmp(address, "unix:", 5))
        connection->fd = begin_unix(address + 5);
    else
        connection->fd = begin_tcp(address + (strncmp(address, "tcp:", 4) ? 0 : 4));
    connection->welcome = false;
    connection->got = 0;
    return connection->fd >= 0;
}

void connection_close(Connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    if (connection->fd >= 0 && !connection->welcome)
        turn = (turn + 1) % 1024;
    free(connection->in);
    *connection = (Connection){.fd = -1};
}

/* Sends bytes. Returns the number sent, possibly 0, or -1 if the connection has ended. */
static ssize_t put(int fd, const unsigned char *bytes, size_t length)
{
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR || errno == EINPROGRESS || errno == ENOTCONN ? 0 : -1;
}

bool connection_send(Connection *connection, Frame *hello, size_t *hello_sent, Kept *kept)
{
    while (*hello_sent < hello->length) {
        ssize_t sent = put(connection->fd, hello->bytes + *hello_sent, hello->length - *hello_sent);
        if (sent <= 0)
            return sent == 0;
        *hello_sent += (size_t)sent;
    }
    while (connection->welcome && kept->sending) {
        Frame *frame = kept->sending;
        ssize_t sent = put(connection->fd, frame->bytes + kept->offset, frame->length - kept->offset);
        if (sent <= 0)
            return sent == 0;
        kept->offset += (size_t)sent;
        if (kept->offset == frame->length) {
            kept->sending = frame->next;
            kept->offset = 0;
        }
    }
    return true;
}

static bool room(Connection *connection, size_t wanted)
{
    if (connection->room >= wanted)
        return true;
    unsigned char *larger = realloc(connection->in, wanted);
    if (larger) {
        connection->in = larger;
        connection->room = wanted;
    }
    return larger != NULL;
}

bool connection_receive(Connection *connection, Heard *heard, void *to)
{
    for (;;) {
        size_t whole = HEADER;
        if (connection->got >= HEADER) {
            long payload = frame_payload(connection->in);
            if (payload < 0)
                return false;
            whole += (size_t)payload;
        }
        if (connection->got >= HEADER && connection->got == whole) {
            if (!frame_sound(connection->in, whole - HEADER))
                return false;
            connection->got = 0;
            heard(to, frame_kind(connection->in), connection->in + HEADER, whole - HEADER);
            continue;
        }
        if (!room(connection, whole))
            return false;
        ssize_t came = recv(connection->fd, connection->in + connection->got, whole - connection->got, MSG_DONTWAIT);
        if (came <= 0)
            return came < 0 && (errno == EAGAIN || errno == EINTR);
        connection->got += (size_t)came;
    }
}
