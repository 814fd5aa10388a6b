/* What decides, once in slurmctld. If there is a topology.yaml, Slurm loads only plugins of its own names. Copies of this
 * library with such a name (topology_tree.so) in front of the stock plugins in PluginDir are then loaded in their place,
 * once for each topology of the file. Each copy wraps the stock plugin of its name, and all share the core in
 * topology_topolane.so next to them. */
#ifndef TOPOLANE_CORE_H
#define TOPOLANE_CORE_H

#include "release.h"
#include "stock.h"

typedef struct {
    uint32_t version; /* of Slurm and of this structure's users: see core_find */
    void (*open)(void);
    void (*close)(void);
    /* Slurm builds its topologies one after another: `context` is that of this call, NULL before 25.05. */
    void (*took_control)(const void *context);
    bool (*has_policies)(void);
    int (*place)(topology_eval_t *asked, const Stock *with);
    void (*nodes_changed)(void);
    bool (*rank)(bitstr_t *nodes, uint32_t **ranks, uint32_t *count);
} Core;

/* The name under which Slurm loads this library: topolane, or that of a stock plugin, such as tree. */
const char *core_own_name(void);

/* Whether this file has the name of another topology plugin too. The loader then gives Slurm one library for both names,
 * with one stock plugin, so Slurm must take its own. Logs a line. */
bool core_has_other_names(void);

/* The core; NULL, with a line in the log, if topology_topolane.so cannot be loaded. */
const Core *core_find(void);

#endif
