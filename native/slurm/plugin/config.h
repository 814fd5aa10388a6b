/* topolane.conf: the rules that give jobs their policies. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_CONFIG_H
#define TOPOLANE_CONFIG_H

#include <stdint.h>
#include <stdio.h>

#include "option.h"

/* A rule. The first rule that matches a job applies. */
typedef struct {
    int line;         /* of the file; 0 for the rule of jobs that no line fits */
    char *partitions; /* names with commas, or NULL for any */
    char *qos;
    char *accounts;
    const Policy_Kind *policy;
    double min_bandwidth;
    bool outside_shares; /* jobs that are not isolated may share links with those that are */
    bool has_outside;    /* the line itself says so */
    bool waits;          /* isolated jobs wait while the engine cannot answer; otherwise stock Slurm chooses their nodes */
    bool has_waits;      /* the line itself says so */
} Rule;

typedef struct {
    char *engine;     /* the engine's shared library */
    char *machine;    /* a machine file, or two with a comma; NULL for topology.conf */
    char *stock;      /* the stock plugin: tree or block */
    uint64_t call_nanoseconds;
    bool outside_shares; /* the default for lines, and the value for jobs without a rule */
    bool waits;          /* the default for lines: see Rule */
    bool is_read;        /* the file could be read; if not, it is unknown what jobs may ask for */
    char *jobs_may;      /* what jobs may ask for themselves: policies, min-bandwidth, share-links */
    Rule *rules;
    size_t rule_count;
    Rule otherwise; /* for jobs without a matching rule: stock */
} Config;

/* Reads the `length` bytes of a file, with a zero byte after them; `name` is for errors. Returns NULL, or a sentence about
 * the first wrong line, which the caller frees. Even then `config` has the content of the other lines up to a zero byte in
 * the file, so that jobs that must wait without the engine do wait. */
char *config_read(Config *config, const char *name, const char *text, size_t length);

/* Writes what commands need to know of it as lines of topolane_jobs. They read no topolane.conf themselves. */
void config_print(FILE *to, const Config *config);

/* The rule for a job: the first that matches, otherwise the stock rule. Never NULL. */
const Rule *config_rule(const Config *config, const char *partition, const char *qos, const char *account);

/* The line of the first rule that has a policy, if any; 0 if jobs may ask for the policy; -1 if no job has it. */
int config_line_with(const Config *config, const Policy_Kind *policy);

/* What gave a job its policy, if no line of topolane.conf did. */
enum { RULE_OTHERWISE = 0, RULE_OPTION = -1, RULE_STOCK = -2 };

/* The terms that apply to a job. */
typedef struct {
    const Policy_Kind *policy;
    int rule; /* what gave it: a line of topolane.conf, or one of RULE_... */
    double min_bandwidth;
    bool shares_links; /* if it is not isolated: whether it may share links with jobs that are */
    bool waits;        /* the job is isolated and waits while the engine cannot answer, because it asked for isolation or
                        * its rule says so */
    bool was_refused;  /* the job asks for something that jobs may not ask for, and does not get it */
} Terms;

/* The rule's terms, changed by the job's own option (NULL: none) as far as jobs may do so. */
Terms config_terms(const Config *config, const Rule *rule, const Option *option);

void config_free(Config *config);

#endif
