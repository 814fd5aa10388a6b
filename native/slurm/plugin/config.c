#define _GNU_SOURCE
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char *file;
    int line;
    Config *config;
    Rule rule;
} Reader;

__attribute__((format(printf, 2, 3))) static char *problem(const Reader *reader, const char *format, ...)
{
    char *what = NULL, *whole = NULL;
    va_list rest;
    va_start(rest, format);
    if (vasprintf(&what, format, rest) < 0)
        what = NULL;
    va_end(rest);
    if (asprintf(&whole, "%s line %d: %s", reader->file, reader->line, what ? what : "no memory") < 0)
        whole = strdup("no memory");
    free(what);
    return whole;
}

static char *set_text(const Reader *reader, char **to, const char *key, const char *value)
{
    if (*to)
        return problem(reader, "%s is given twice", key);
    if (!*value)
        return problem(reader, "%s has no value", key);
    *to = strdup(value);
    return *to ? NULL : problem(reader, "no memory");
}

static char *set_policy(Reader *reader, const char *value)
{
    if (reader->rule.policy)
        return problem(reader, "Policy is given twice");
    char *why;
    reader->rule.policy = policy_named(value, &why);
    char *error = reader->rule.policy ? NULL : problem(reader, "%s", why ? why : "no memory");
    free(why);
    return error;
}

static char *set_outside(Reader *reader, const char *value)
{
    bool shares = !strcmp(value, "share");
    if (reader->rule.has_outside)
        return problem(reader, "Outside is given twice");
    if (!shares && strcmp(value, "apart"))
        return problem(reader, "Outside is '%s', not apart or share", value);
    reader->rule.outside_shares = shares;
    reader->rule.has_outside = true;
    return NULL;
}

static char *set_waits(Reader *reader, const char *value)
{
    bool waits = !strcmp(value, "wait");
    if (reader->rule.has_waits)
        return problem(reader, "WithoutEngine is given twice");
    if (!waits && strcmp(value, "stock"))
        return problem(reader, "WithoutEngine is '%s', not stock or wait", value);
    reader->rule.waits = waits;
    reader->rule.has_waits = true;
    return NULL;
}

/* Sets the words that jobs may use in --topolane. */
static char *set_jobs_may(Reader *reader, const char *value)
{
    char *copy = strdup(value), *rest = NULL, *error = copy ? NULL : problem(reader, "no memory");
    for (char *word = copy ? strtok_r(copy, ",", &rest) : NULL; word && !error; word = strtok_r(NULL, ",", &rest)) {
        char *why = NULL;
        if (strcmp(word, "min-bandwidth") && strcmp(word, "share-links") && !policy_named(word, &why))
            error = problem(reader, "JobsMay: %s; min-bandwidth and share-links may stand there too", why ? why : word);
        free(why);
    }
    free(copy);
    return error ? error : set_text(reader, &reader->config->jobs_may, "JobsMay", value);
}

static char *set_number(const Reader *reader, double *to, const char *key, const char *value, double least, double most)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !(number >= least && number <= most))
        return problem(reader, "%s is '%s', not a number from %g to %g", key, value, least, most);
    *to = number;
    return NULL;
}

static char *set(Reader *reader, const char *key, const char *value)
{
    Config *config = reader->config;
    if (!strcasecmp(key, "Engine"))
        return set_text(reader, &config->engine, key, value);
    if (!strcasecmp(key, "Machine"))
        return set_text(reader, &config->machine, key, value);
    if (!strcasecmp(key, "Stock")) {
        if (strcmp(value, "tree") && strcmp(value, "block"))
            return problem(reader, "Stock is '%s', not tree or block", value);
        return set_text(reader, &config->stock, key, value);
    }
    if (!strcasecmp(key, "CallTime")) {
        double microseconds = 0;
        char *error = set_number(reader, &microseconds, key, value, 1, 1e6);
        config->call_nanoseconds = (uint64_t)(1000 * microseconds);
        return error;
    }
    if (!strcasecmp(key, "Outside"))
        return set_outside(reader, value);
    if (!strcasecmp(key, "WithoutEngine"))
        return set_waits(reader, value);
    if (!strcasecmp(key, "JobsMay"))
        return set_jobs_may(reader, value);
    if (!strcasecmp(key, "Partition"))
        return set_text(reader, &reader->rule.partitions, key, value);
    if (!strcasecmp(key, "QOS"))
        return set_text(reader, &reader->rule.qos, key, value);
    if (!strcasecmp(key, "Account"))
        return set_text(reader, &reader->rule.accounts, key, value);
    if (!strcasecmp(key, "Policy"))
        return set_policy(reader, value);
    if (!strcasecmp(key, "MinBandwidth")) {
        if (reader->rule.min_bandwidth > 0)
            return problem(reader, "MinBandwidth is given twice");
        if (!bandwidth_share_read(value, &reader->rule.min_bandwidth))
            return problem(reader, "MinBandwidth is '%s', not a number from 0.01 to 1", value);
        return NULL;
    }
    return problem(reader, "there is no setting '%s'", key);
}

static void free_rule(Rule *rule)
{
    free(rule->partitions);
    free(rule->qos);
    free(rule->accounts);
    *rule = (Rule){0};
}

/* Adds the rule of the finished line, if it has one. */
static char *end_line(Reader *reader)
{
    Rule *rule = &reader->rule;
    Config *config = reader->config;
    bool is_for_some = rule->partitions || rule->qos || rule->accounts;
    if (!rule->policy) {
        if (is_for_some || rule->min_bandwidth > 0)
            return problem(reader, "the line has no Policy");
        if (rule->has_outside)
            config->outside_shares = rule->outside_shares;
        if (rule->has_waits)
            config->waits = rule->waits;
        return NULL;
    }
    if (rule->has_waits && !rule->policy->isolates)
        return problem(reader, "WithoutEngine is for policies that isolate, not for %s", rule->policy->name);
    if (rule->min_bandwidth > 0 && rule->min_bandwidth < 1 && strcmp(rule->policy->name, "dedicated"))
        return problem(reader, "MinBandwidth is for the policy dedicated, not for %s", rule->policy->name);
    if (!(rule->min_bandwidth > 0))
        rule->min_bandwidth = 1;
    rule->line = reader->line;
    Rule *more = realloc(config->rules, (config->rule_count + 1) * sizeof *more);
    if (!more)
        return problem(reader, "no memory");
    config->rules = more;
    config->rules[config->rule_count++] = *rule;
    *rule = (Rule){0};
    return NULL;
}

static char *read_line(Reader *reader, char *line)
{
    line[strcspn(line, "#")] = '\0';
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        char *equals = strchr(word, '=');
        if (!equals)
            return problem(reader, "'%s' is not of the form Key=Value", word);
        *equals = '\0';
        char *error = set(reader, word, equals + 1);
        if (error)
            return error;
    }
    return end_line(reader);
}

char *config_read(Config *config, const char *name, const char *text, size_t length)
{
    *config = (Config){.call_nanoseconds = 2000000};
    Reader reader = {.file = name, .config = config};
    char *copy = strdup(text), *error = copy ? NULL : strdup("no memory");
    for (char *line = copy; line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        reader.line++;
        char *wrong = read_line(&reader, line);
        if (error)
            free(wrong);
        else
            error = wrong;
        free_rule(&reader.rule);
        line = next;
    }
    free(copy);
    if (!error && strlen(text) < length)
        error = problem(&reader, "a zero byte ends the text");
    if (!error && !config->engine) {
        reader.line = 1;
        error = problem(&reader, "Engine, the path of libtopolane.so, is missing");
    }
    for (size_t index = 0; index < config->rule_count; index++) {
        Rule *rule = &config->rules[index];
        rule->outside_shares = rule->has_outside ? rule->outside_shares : config->outside_shares;
        rule->waits = rule->has_waits ? rule->waits : config->waits;
    }
    config->otherwise = (Rule){.policy = &POLICIES[0], .min_bandwidth = 1, .outside_shares = config->outside_shares};
    config->is_read = !error;
    return error;
}

static void print_word(FILE *to, const char *key, const char *value)
{
    if (value)
        fprintf(to, " %s=%s", key, value);
}

void config_print(FILE *to, const Config *config)
{
    fprintf(to, "call-time %" PRIu64 "\n", config->call_nanoseconds);
    if (config->engine)
        fprintf(to, "engine %s\n", config->engine);
    for (size_t index = 0; index < config->rule_count; index++) {
        const Rule *rule = &config->rules[index];
        fprintf(to, "rule %d %s %.17g", rule->line, rule->policy->name, rule->min_bandwidth);
        print_word(to, "Partition", rule->partitions);
        print_word(to, "QOS", rule->qos);
        print_word(to, "Account", rule->accounts);
        fputc('\n', to);
    }
}

/* Whether a name is in a list with commas. A missing list contains every name. */
static bool names(const char *list, const char *name)
{
    if (!list)
        return true;
    if (!name)
        return false;
    size_t length = strlen(name);
    while (*list) {
        size_t word = strcspn(list, ",");
        if (word == length && !strncasecmp(list, name, length))
            return true;
        list += word + (list[word] == ',');
    }
    return false;
}

const Rule *config_rule(const Config *config, const char *partition, const char *qos, const char *account)
{
    for (size_t index = 0; index < config->rule_count; index++) {
        const Rule *rule = &config->rules[index];
        if (names(rule->partitions, partition) && names(rule->qos, qos) && names(rule->accounts, account))
            return rule;
    }
    return &config->otherwise;
}

int config_line_with(const Config *config, const Policy_Kind *policy)
{
    for (size_t index = 0; index < config->rule_count; index++)
        if (config->rules[index].policy == policy)
            return config->rules[index].line;
    return config->jobs_may && names(config->jobs_may, policy->name) ? 0 : -1;
}

Terms config_terms(const Config *config, const Rule *rule, const Option *option)
{
    Terms terms = {.policy = rule->policy, .rule = rule->line, .min_bandwidth = rule->min_bandwidth,
                   .shares_links = rule->outside_shares};
    terms.waits = rule->waits && rule->policy->isolates;
    if (!option)
        return terms;
    const char *may = config->jobs_may ? config->jobs_may : "";
    if (option->policy && option->policy != rule->policy) {
        if (!config->is_read || names(may, option->policy->name)) {
            terms.policy = option->policy;
            terms.rule = RULE_OPTION;
            terms.min_bandwidth = 1;
            terms.waits = false;
        } else
            terms.was_refused = true;
    }
    if (option->policy && option->policy == terms.policy)
        terms.waits = terms.policy->isolates; /* The job itself asked for this policy. */
    if (option->min_bandwidth > 0) {
        if (names(may, "min-bandwidth") && !strcmp(terms.policy->name, "dedicated"))
            terms.min_bandwidth = option->min_bandwidth;
        else
            terms.was_refused = true;
    }
    if (option->shares_links && !terms.shares_links) {
        if (names(may, "share-links"))
            terms.shares_links = true;
        else
            terms.was_refused = true;
    }
    return terms;
}

void config_free(Config *config)
{
    for (size_t index = 0; index < config->rule_count; index++)
        free_rule(&config->rules[index]);
    free(config->rules);
    free(config->engine);
    free(config->machine);
    free(config->stock);
    free(config->jobs_may);
    *config = (Config){0};
}
