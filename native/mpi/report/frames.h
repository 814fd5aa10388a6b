/* Frames of the protocol, and the list of those that the receiver has not acknowledged yet. */
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
    size_t length;              /* including the header */
    unsigned char bytes[];
} Frame;

/* Allocates a frame with space for a payload. NULL without memory. */
Frame *frame_new(size_t payload);
/* Writes the header of a frame whose payload is complete. */
void frame_seal(Frame *frame, int kind, uint64_t sequence, size_t payload);

/* The length of the payload after a header; -1 if it is not a frame. */
long frame_payload(const unsigned char *header);
/* Whether the checksum of a complete frame is right. */
bool frame_sound(const unsigned char *bytes, size_t payload);
int frame_kind(const unsigned char *header);

/* Frames that are not acknowledged, in the order of their sequence numbers. */
typedef struct {
    Frame *first, **end, *sending;   /* `sending` is the next frame to send; NULL after the last one */
    size_t offset, bytes;            /* sent bytes of `sending`, and bytes of all frames */
} Kept;

void kept_open(Kept *kept);
void kept_add(Kept *kept, Frame *frame);
/* Drops all frames up to a sequence number. */
void kept_drop(Kept *kept, uint64_t sequence);
/* Starts to send all frames again, on a new connection. */
void kept_again(Kept *kept);

#endif
