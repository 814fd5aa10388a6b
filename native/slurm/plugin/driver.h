/* What the plugin has open in slurmctld: configuration, engine, machine, and how Slurm's nodes are numbered on it. */
#ifndef TOPOLANE_DRIVER_H
#define TOPOLANE_DRIVER_H

#include "config.h"
#include "engine.h"
#include "holders.h"
#include "links_file.h"
#include "release.h"

enum { UNKNOWN = UINT32_MAX };

typedef struct {
    bool is_opened;   /* this is slurmctld */
    bool had_control; /* since it was opened */
    bool is_active;   /* else stock decides everything */
    Config config;
    Engine engine;
    topolane_machine *machine;
    topolane_policy *policies[POLICY_COUNT]; /* as POLICIES; NULL for stock */
    Holders holders;                         /* see running.h */
    Owners owners;                           /* links of jobs, also of those that wait and were answered */
    bool are_owners_read;                    /* since this slurmctld is in control */
    char *owners_path;
    char *about; /* lines for topolane_jobs: see publish.h */
    char *why;   /* it is not active */
    uint32_t *machine_node; /* by Slurm's index of a node */
    uint32_t *slurm_node;   /* by the machine's number of a node */
    uint32_t machine_nodes;
    size_t machine_words;   /* of 64 nodes */
    uint64_t *machine_bits; /* see driver_bits */
    bool is_in_order;       /* Slurm and the machine number the nodes alike */
    int mapped_nodes;  /* node_record_count and active_node_record_count for which these are */
    int mapped_active;
    bitstr_t *unknown; /* nodes that the machine does not name */
} Driver;

extern Driver driver;

/* Opens everything. Whatever fails is said in the log, and the driver is not active. */
void driver_open(void);

void driver_close(void);

/* Numbers Slurm's nodes, if they have changed. */
bool driver_map_nodes(void);

/* What holds for a job by its rule and its own option, and the policy that the engine has for it (NULL for stock). */
Terms driver_terms(const job_record_t *job);
topolane_policy *driver_policy(const Policy_Kind *kind);

/* This slurmctld has just taken control. If it had control before, everything is opened again: while it was in standby, another
 * one may have read other files and has written the file of links, and nodes may have other numbers. */
void driver_took_control(void);

/* Reads the files of links that jobs own and of links that are out of service, if that was not done since. */
void driver_read_owners(void);

/* Takes over which links are out of service, if that has changed. It reads no file. */
void driver_take_links_out(void);

/* The name of a use of links, for people. */
const char *driver_link_use(uint32_t link_use);

/* The nodes of a bitmap on the machine, ascending; the caller frees them. */
uint32_t *driver_nodes(bitstr_t *map, size_t *count);

/* The same as bits of the machine's nodes; they are valid until the next call. NULL without memory. */
const uint64_t *driver_bits(bitstr_t *map);

/* Whether nodes have different weights; looked at once a second. */
bool driver_has_weights(void);

/* The file topolane.conf, whose name a caller frees. */
char *driver_config_path(void);

#endif
