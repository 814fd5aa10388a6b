/* The real engine, whose calls to place a job fail in the way that a file names: "panic", "error", "slow" or "wrong". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topolane.h"

#define FUNCTION(name) ((__typeof__(&name))dlsym(dlopen(REAL_ENGINE, RTLD_NOW | RTLD_LOCAL), #name))

topolane_status topolane_test_panic(topolane_state *state, char **error);

static void burn(double milliseconds)
{
    clock_t end = clock() + (clock_t)(milliseconds * CLOCKS_PER_SEC / 1000);
    while (clock() < end)
        ;
}

topolane_status topolane_state_place(topolane_state *state, const topolane_policy *policy, const topolane_request *request,
                                     topolane_decision **decision, topolane_refusal **refusal, char **error)
{
    char fault[16] = "";
    FILE *file = fopen(FAULT_FILE, "re");
    if (file) {
        if (!fgets(fault, sizeof fault, file))
            *fault = '\0';
        fclose(file);
    }
    if (!strncmp(fault, "panic", 5)) {
        *decision = NULL;
        return FUNCTION(topolane_test_panic)(state, error);
    }
    if (!strncmp(fault, "error", 5)) {
        *decision = NULL;
        *error = NULL;
        return TOPOLANE_STATUS_FAILED;
    }
    topolane_request changed = *request;
    if (!strncmp(fault, "wrong", 5))
        changed.slots += 1;
    if (!strncmp(fault, "slow", 4))
        burn(20);
    return FUNCTION(topolane_state_place)(state, policy, &changed, decision, refusal, error);
}
