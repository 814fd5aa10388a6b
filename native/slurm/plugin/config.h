/* topolane.conf: which jobs get which policy. Knows neither Slurm nor the engine. */
#ifndef TOPOLANE_CONFIG_H
#define TOPOLANE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;
    bool isolates;       /* no link carries traffic of two of its jobs */
    bool dedicates;      /* and its jobs own links, so that they may share switches */
    bool is_stock;       /* the engine is not asked */
} Policy_Kind;

/* The first rule that fits a job decides. */
typedef struct {
    char *partitions; /* names with commas, or NULL for any */
    char *qos;
    char *accounts;
    const Policy_Kind *policy;
    double min_bandwidth;
} Rule;

typedef struct {
    char *engine;     /* the engine's shared library */
    char *machine;    /* a machine file; NULL for topology.conf */
    char *stock;      /* the stock plugin: tree or block */
    uint64_t call_nanoseconds;
    bool outside_shares; /* whether jobs that are not isolated may share links with those that are */
    Rule *rules;
    size_t rule_count;
} Config;

/* Reads the text of a file; `name` is for errors. Returns NULL, or a sentence that the caller frees: then `config` is empty. */
char *config_read(Config *config, const char *name, const char *text);

/* The rule for a job. Never NULL: without a rule that fits it is stock. */
const Rule *config_rule(const Config *config, const char *partition, const char *qos, const char *account);

void config_free(Config *config);

#endif
