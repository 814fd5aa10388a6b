/* A stream to a receiver that never waits. */
#ifndef TOPOLANE_CONNECTION_H
#define TOPOLANE_CONNECTION_H

#include "frames.h"

typedef struct {
    int fd;                  /* -1: none */
    bool welcome;            /* WELCOME has come */
    unsigned char *in;       /* what has come of a frame */
    size_t got, room;
} Connection;

/* Begins to connect to unix:/path, host:port or tcp:host:port. False: it cannot be. May look a name up. */
bool connection_open(Connection *connection, const char *address);
void connection_close(Connection *connection);
/* Sends as much as goes, HELLO first. False: the connection is at its end. */
bool connection_send(Connection *connection, Frame *hello, size_t *hello_sent, Kept *kept);

/* Called with every frame that comes. */
typedef void Heard(void *to, int kind, const unsigned char *payload, size_t length);
/* Reads what is there. False: the connection is at its end, or what came is no frame. */
bool connection_receive(Connection *connection, Heard *heard, void *to);

#endif
