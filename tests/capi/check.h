/* What the programs here share: a check that names its place, and one for calls that must succeed. */
#include "topolane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

/* A call that ends as expected; frees its error. */
#define ENDS(expected, call)                                                                \
    do {                                                                                    \
        char *error = NULL;                                                                 \
        topolane_status status = (call);                                                    \
        if (status != (expected)) {                                                         \
            fprintf(stderr, "%s:%d: %s: status %d, %s\n", __FILE__, __LINE__, #call,        \
                    (int)status, error ? error : "no error");                               \
            exit(1);                                                                        \
        }                                                                                   \
        CHECK((error != NULL) == (status >= TOPOLANE_STATUS_BAD_INPUT));                    \
        topolane_text_free(error);                                                          \
    } while (0)

#define OK(call) ENDS(TOPOLANE_STATUS_OK, call)
#define BAD(call) ENDS(TOPOLANE_STATUS_BAD_INPUT, call)

static inline topolane_request request_of(uint64_t id, uint32_t slots) {
    topolane_request request;
    topolane_request_init(&request, sizeof request);
    request.id = id;
    request.slots = slots;
    return request;
}
