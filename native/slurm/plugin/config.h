/* topolane.conf: which jobs get which policy. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_CONFIG_H
#define TOPOLANE_CONFIG_H

#include <stdint.h>

#include "option.h"

/* The first rule that fits a job decides. */
typedef struct {
    char *partitions; /* names with commas, or NULL for any */
    char *qos;
    char *accounts;
    const Policy_Kind *policy;
    double min_bandwidth;
    bool outside_shares; /* jobs that are not isolated may share links with those that are */
    bool has_outside;    /* the line says so itself */
    bool waits;          /* isolated jobs wait while the engine cannot answer; else stock Slurm chooses their nodes */
    bool has_waits;      /* the line says so itself */
} Rule;

typedef struct {
    char *engine;     /* the engine's shared library */
    char *machine;    /* a machine file, or two with a comma; NULL for topology.conf */
    char *stock;      /* the stock plugin: tree or block */
    uint64_t call_nanoseconds;
    bool outside_shares; /* for lines that do not say it, and for jobs that no line fits */
    bool waits;          /* for lines that do not say it: see Rule */
    bool is_read;        /* the file could be read: else what jobs may ask for is not known */
    char *jobs_may;      /* what jobs may ask for themselves: policies, min-bandwidth, share-links */
    Rule *rules;
    size_t rule_count;
    Rule otherwise; /* stock, for jobs that no line fits */
} Config;

/* Reads the text of a file; `name` is for errors. Returns NULL, or a sentence about the first line that is wrong, which the caller
 * frees. Then `config` has what the other lines say, so that jobs wait that are to wait without the engine. */
char *config_read(Config *config, const char *name, const char *text);

/* The rule for a job. Never NULL: without a rule that fits it is stock. */
const Rule *config_rule(const Config *config, const char *partition, const char *qos, const char *account);

/* What holds for a job. */
typedef struct {
    const Policy_Kind *policy;
    double min_bandwidth;
    bool shares_links; /* if it is not isolated: whether it may share links with jobs that are */
    bool waits;        /* it is isolated and waits while the engine cannot answer: it asked itself, or its rule wants that */
    bool was_refused;  /* it asks for something that jobs may not ask for, and does not get it */
} Terms;

/* The rule, changed by what the job asks for itself (NULL for nothing) as far as jobs may. */
Terms config_terms(const Config *config, const Rule *rule, const Option *option);

void config_free(Config *config);

#endif
