#define _GNU_SOURCE
#include "option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BANDWIDTH[] = "min-bandwidth=";

static char *sentence(const char *word, const char *what)
{
    char *text = NULL;
    return asprintf(&text, "--topolane: '%s' %s", word, what) < 0 ? strdup("--topolane: no memory") : text;
}

static char *read_word(Option *option, const char *word)
{
    if (!strncmp(word, BANDWIDTH, sizeof BANDWIDTH - 1)) {
        if (!bandwidth_share_read(word + sizeof BANDWIDTH - 1, &option->min_bandwidth))
            return sentence(word, "does not give a number from 0.01 to 1");
        return NULL;
    }
    if (!strcmp(word, "share-links")) {
        option->shares_links = true;
        return NULL;
    }
    if (option->policy)
        return sentence(word, "is a second policy");
    char *why, *whole = NULL;
    option->policy = policy_named(word, &why);
    if (option->policy)
        return NULL;
    if (why && asprintf(&whole, "--topolane: %s; the words min-bandwidth=X and share-links may follow", why) < 0)
        whole = NULL;
    free(why);
    return whole ? whole : sentence(word, "is not a policy");
}

char *option_read(Option *option, const char *text)
{
    *option = (Option){0};
    if (strnlen(text, MOST_OPTION + 1) > MOST_OPTION)
        return strdup("--topolane: the option is longer than 200 characters");
    _Static_assert(MOST_OPTION == 200, "the sentence says so");
    char *copy = strdup(text), *rest = NULL, *error = copy ? NULL : sentence(text, "cannot be read: no memory");
    bool any = false;
    for (char *word = copy ? strtok_r(copy, ",", &rest) : NULL; word && !error; word = strtok_r(NULL, ",", &rest)) {
        error = read_word(option, word);
        any = true;
    }
    if (!error && !any)
        error = sentence(text, "names nothing");
    if (!error && option->min_bandwidth > 0 && option->policy && strcmp(option->policy->name, "dedicated"))
        error = sentence(text, "is refused: min-bandwidth is for the policy dedicated");
    if (error)
        *option = (Option){0};
    free(copy);
    return error;
}
