/* Frames of native/mpi/PROTOCOL.md. On a little-endian machine the structs have the bytes of the
 * frames. */
#include "frames.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is little-endian");

/* The CRC-32 of IEEE 802.3, the same as zlib's. */
static uint32_t check_of(uint32_t check, const unsigned char *bytes, size_t length)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t value = byte;
            for (int bit = 0; bit < 8; bit++)
                value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
            table[byte] = value;
        }
    check = ~check;
    while (length--)
        check = table[(check ^ *bytes++) & 0xFF] ^ check >> 8;
    return ~check;
}

Frame *frame_new(size_t payload)
{
    Frame *frame = malloc(sizeof *frame + HEADER + payload);
    if (frame)
        *frame = (Frame){.length = HEADER + payload};
    return frame;
}

static uint32_t check_of_frame(const unsigned char *bytes, size_t payload)
{
    return check_of(check_of(0, bytes, HEADER - 4), bytes + HEADER, payload);
}

void frame_seal(Frame *frame, int kind, uint64_t sequence, size_t payload)
{
    uint16_t version = 1, of_kind = (uint16_t)kind;
    uint32_t length = (uint32_t)payload;
    frame->sequence = sequence;
    frame->length = HEADER + payload;
    memcpy(frame->bytes, "TLMP", 4);
    memcpy(frame->bytes + 4, &version, 2);
    memcpy(frame->bytes + 6, &of_kind, 2);
    memcpy(frame->bytes + 8, &length, 4);
    memcpy(frame->bytes + 12, &sequence, 8);
    uint32_t check = check_of_frame(frame->bytes, payload);
    memcpy(frame->bytes + 20, &check, 4);
}

long frame_payload(const unsigned char *header)
{
    uint16_t version;
    uint32_t length;
    memcpy(&version, header + 4, 2);
    memcpy(&length, header + 8, 4);
    return memcmp(header, "TLMP", 4) || version != 1 || length > LONGEST ? -1 : (long)length;
}

bool frame_sound(const unsigned char *bytes, size_t payload)
{
    uint32_t check;
    memcpy(&check, bytes + 20, 4);
    return check == check_of_frame(bytes, payload);
}

int frame_kind(const unsigned char *header)
{
    uint16_t kind;
    memcpy(&kind, header + 6, 2);
    return kind;
}

void kept_open(Kept *kept)
{
    *kept = (Kept){.end = &kept->first};
}

void kept_add(Kept *kept, Frame *frame)
{
    frame->next = NULL;
    *kept->end = frame;
    kept->end = &frame->next;
    kept->bytes += frame->length;
    if (!kept->sending) {
        kept->sending = frame;
        kept->offset = 0;
    }
}

void kept_drop(Kept *kept, uint64_t sequence)
{
    /* Keep a frame that is partly sent, because the rest must still be sent. */
    while (kept->first && kept->first->sequence <= sequence && !(kept->first == kept->sending && kept->offset)) {
        Frame *done = kept->first;
        if (done == kept->sending)
            kept->sending = done->next;
        kept->first = done->next;
        kept->bytes -= done->length;
        free(done);
    }
    if (!kept->first)
        kept->end = &kept->first;
}

void kept_again(Kept *kept)
{
    kept->sending = kept->first;
    kept->offset = 0;
}
