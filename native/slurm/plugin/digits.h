/* Reads numbers from a file that a program wrote: only digits, with one separator between two numbers. */
#ifndef TOPOLANE_DIGITS_H
#define TOPOLANE_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

/* The unread part of a text: from `at` up to, but without, `end`. */
typedef struct {
    const char *at, *end;
} Text;

/* Reads a number of at most `most`, which must be 9 or more. Returns false if there is none. */
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

/* Reads this character. Returns false if the text continues with another one. */
static inline bool take_sign(Text *text, char sign)
{
    if (text->at == text->end || *text->at != sign)
        return false;
    text->at++;
    return true;
}

#endif
