/* A nonblocking stream to a receiver. */
#ifndef TOPOLANE_CONNECTION_H
#define TOPOLANE_CONNECTION_H

#include "frames.h"

typedef struct {
    int fd;                  /* -1 if there is none */
    bool welcome;            /* WELCOME has arrived */
    unsigned char *in;       /* the received part of a frame */
    size_t got, room;
} Connection;

/* Starts to connect to unix:/path, host:port or tcp:host:port. Returns false if that is impossible. It may
 * look up a name. */
bool connection_open(Connection *connection, const char *address);
void connection_close(Connection *connection);
/* Sends what can be sent at once, HELLO first. Returns false if the connection has ended. */
bool connection_send(Connection *connection, Frame *hello, size_t *hello_sent, Kept *kept);

/* The function that gets each received frame. */
typedef void Heard(void *to, int kind, const unsigned char *payload, size_t length);
/* Reads what has arrived. Returns false if the connection has ended or the data are not a frame. */
bool connection_receive(Connection *connection, Heard *heard, void *to);

#endif
