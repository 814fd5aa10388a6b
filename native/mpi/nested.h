/* Finds out whether a call is made inside another watched call. */
#ifndef TOPOLANE_NESTED_H
#define TOPOLANE_NESTED_H

#include <stdbool.h>

/* Call this from a wrapper on a thread that began a watched call and has not ended it. Returns false if
 * the program has left that call, by longjmp or an exception from its error handler; then that call is
 * ended here. */
bool is_nested(void);

#endif
