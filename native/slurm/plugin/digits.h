/* Numbers in a file that a program wrote: digits, one sign between two numbers, and nothing else. */
#ifndef TOPOLANE_DIGITS_H
#define TOPOLANE_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

/* A text that is read from `at` on; `end` is behind its last byte. */
typedef struct {
    const char *at, *end;
} Text;

/* Takes a number up to `most`, which is 9 or more. */
static inline bool take_number(Text *text, uint64_t most, uint64_t *number)
{
    const char *first = text->at;
    *number = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        uint64_t digit = (uint64_t)(*text->at - '0');
        if (*number > (most - digit) / 10)
            return false;
        *number = 10 * *number + digit;
    }
    return text->at > first;
}

/* Takes this sign. */
static inline bool take_sign(Text *text, char sign)
{
    if (text->at == text->end || *text->at != sign)
        return false;
    text->at++;
    return true;
}

#endif
