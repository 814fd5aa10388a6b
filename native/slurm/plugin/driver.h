/* The plugin's state in slurmctld: configuration, engine, machine, and the mapping from Slurm's nodes to the machine's. */
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
    bool had_control; /* since the driver was opened */
    bool is_active;   /* otherwise stock decides everything */
    Config config;
    Engine engine;
    topolane_machine *machine;
    topolane_policy *policies[POLICY_COUNT]; /* in the order of POLICIES; NULL for stock */
    Holders holders;                         /* see running.h */
    Owners owners;                           /* links of jobs, including waiting jobs that got an answer */
    bool are_owners_read;                    /* since this slurmctld took control */
    char *owners_path;
    char *why; /* why it is not active */
    uint32_t *machine_node; /* by Slurm's index of a node */
    uint32_t *slurm_node;   /* by the machine's number of a node */
    uint32_t machine_nodes;
    size_t machine_words;   /* words of 64 nodes */
    uint64_t *machine_bits; /* see driver_bits */
    bool is_in_order;       /* Slurm and the machine number the nodes in the same order */
    int mapped_nodes;  /* node_record_count and active_node_record_count when the nodes were mapped */
    int mapped_active;
    uint64_t mapped_names; /* a sum of the names of Slurm's nodes then */
    time_t compared_at;    /* when that sum was compared last */
    bool have_nodes_changed; /* a node came or went since */
    bitstr_t *unknown; /* nodes that the machine does not name */
} Driver;

extern Driver driver;

/* Opens everything. Failures are logged, and the driver then is not active. */
void driver_open(void);

void driver_close(void);

/* For `topolane slurm plugin check`, in a process that is not slurmctld: reads topolane.conf, engine and machine as
 * driver_open does. Returns the lines of topolane_jobs about them, and the machine's nodes; NULL without memory. */
char *driver_check(void);

/* Maps Slurm's nodes to the machine's, if Slurm's nodes have changed: a node may come or go while slurmctld runs, and a new
 * one may get the number of one that has gone. */
bool driver_map_nodes(void);

/* Call this when a node comes or goes. Before 25.05 nothing does; names are compared once a second too. */
void driver_nodes_changed(void);

/* The terms for a job from its rule and its own option, and the engine's policy for them (NULL for stock). */
Terms driver_terms(const job_record_t *job);
topolane_policy *driver_policy(const Policy_Kind *kind);

/* Call this when this slurmctld has just taken control. If it had control before, everything is opened again: meanwhile
 * another slurmctld may have read other files and written the file of links, and nodes may have other numbers. */
void driver_took_control(void);

/* Reads the files of owned links and of links out of service, if that was not done since this slurmctld took control. */
void driver_read_owners(void);

/* Applies changes to the links that are out of service. It reads no file. */
void driver_take_links_out(void);

/* Whether fields of jobs may be used. If slurmctld's records have another layout, the driver is not active from then on. */
bool driver_can_read_jobs(void);

/* Whether a job may get a policy other than stock. */
bool driver_has_policies(void);

/* The use of links that a policy promises its jobs: TOPOLANE_LINKS_... */
uint32_t driver_links_of(const Policy_Kind *policy);

/* The word for a use of links, for people. */
const char *driver_link_use(uint32_t link_use);

/* The machine's numbers of the nodes in a bitmap, ascending; the caller frees them. */
uint32_t *driver_nodes(bitstr_t *map, size_t *count);

/* The nodes in a bitmap as bits of the machine's nodes, valid until the next call. NULL without memory. */
const uint64_t *driver_bits(bitstr_t *map);

/* Whether nodes have different weights. Checked once a second. */
bool driver_has_weights(void);

/* The path of topolane.conf, which the caller frees. */
char *driver_config_path(void);

#endif
