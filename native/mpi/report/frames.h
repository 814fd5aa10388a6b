/* Frames of the protocol, and those that a receiver has not acknowledged yet. */
#ifndef TOPOLANE_FRAMES_H
#define TOPOLANE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HELLO = 1, RECORDS = 2, BYE = 3, WELCOME = 16, ACK = 17, SITES = 18, REFUSED = 19 };
enum { HEADER = 24, LONGEST = 1 << 20, MOST_KEPT = 256 << 10 };

typedef struct Frame {
    struct Frame *next;
    uint64_t sequence;
    size_t length;              /* with the header */
    unsigned char bytes[];
} Frame;

/* A frame with room for a payload. NULL: there is no memory. */
Frame *frame_new(size_t payload);
/* Writes the header of a frame whose payload is in place. */
void frame_seal(Frame *frame, int kind, uint64_t sequence, size_t payload);

/* Payload's length of what begins with a header; -1: it is no frame. */
long frame_payload(const unsigned char *header);
/* Whether the check of a whole frame fits. */
bool frame_sound(const unsigned char *bytes, size_t payload);
int frame_kind(const unsigned char *header);

/* Frames in order of their sequence, that are not acknowledged. */
typedef struct {
    Frame *first, **end, *sending;   /* the next to be sent, NULL after the last */
    size_t offset, bytes;            /* of `sending` what is sent; of all together */
} Kept;

void kept_open(Kept *kept);
void kept_add(Kept *kept, Frame *frame);
/* Drops all up to a sequence. */
void kept_drop(Kept *kept, uint64_t sequence);
/* Sends all once more: on a new connection. */
void kept_again(Kept *kept);

#endif
