/* Whether a call is one of those inside of another watched call. */
#ifndef TOPOLANE_NESTED_H
#define TOPOLANE_NESTED_H

#include <stdbool.h>

/* Of a thread that began a watched call and has not ended it, from a wrapper. False: the program has left that call, by
 * longjmp or an exception out of its error handler. The call is then ended here. */
bool is_nested(void);

#endif
