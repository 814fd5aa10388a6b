/* What topology_topolane.so (../shim) and a build for one release of Slurm know of each other. Uses no header of Slurm:
 * the shim serves every release. */
#ifndef TOPOLANE_CORE_H
#define TOPOLANE_CORE_H

#include <stdbool.h>
#include <stdint.h>

/* Changes with this file, so that a shim takes no build of another version of Topolane that it does not understand. */
enum { CORE_INTERFACE = 2 };

/* The stock plugin for the topology of a call. Functions that its release lacks are NULL. */
typedef struct {
    int (*eval_nodes)(void *asked);
    bool (*allow_one_node)(void *context);
    int (*eval_node)(void *asked, int node);
    uint32_t plugin_id;
} Stock;

/* A build exports this as `topolane_core`. In one process all shims share one build. */
typedef struct {
    uint32_t interface;
    uint32_t release; /* Slurm's number of the release that it was compiled for */
    void (*open)(void);
    void (*close)(void);
    /* Slurm builds its topologies one after another: `context` is that of this call, NULL before 25.05. */
    void (*took_control)(const void *context);
    bool (*has_policies)(void);
    int (*place)(void *asked, const Stock *with);
    /* For `topolane slurm plugin check`: see driver_check. */
    char *(*check)(void);
    /* A node came or went while slurmctld runs. */
    void (*nodes_changed)(void);
    /* These return false, and do nothing, if the stock plugin is to answer: ranks of a job's nodes (see rank_nodes), the end
     * of what is stored in a job, and the list of its segments there. */
    bool (*rank)(void *nodes, uint32_t **ranks, uint32_t *count);
    bool (*free_segments)(void *stored, const Stock *with);
    bool (*get_segments)(void *stored, void *list, const Stock *with);
} Core;

#endif
