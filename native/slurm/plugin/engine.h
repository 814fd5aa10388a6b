/* The engine: a shared library with the interface of topolane.h. Knows nothing of Slurm. */
#ifndef TOPOLANE_ENGINE_H
#define TOPOLANE_ENGINE_H

#include "topolane.h"

#define ENGINE_FUNCTIONS(FUNCTION)                                                                                  \
    FUNCTION(api_version)                                                                                           \
    FUNCTION(text_free)                                                                                             \
    FUNCTION(machine_read)                                                                                          \
    FUNCTION(machine_join)                                                                                          \
    FUNCTION(machine_free)                                                                                          \
    FUNCTION(machine_nodes)                                                                                         \
    FUNCTION(machine_node_name)                                                                                     \
    FUNCTION(machine_block)                                                                                         \
    FUNCTION(policy_new)                                                                                            \
    FUNCTION(policy_check)                                                                                          \
    FUNCTION(policy_free)                                                                                           \
    FUNCTION(state_new)                                                                                             \
    FUNCTION(state_free)                                                                                            \
    FUNCTION(state_hold)                                                                                            \
    FUNCTION(state_release)                                                                                         \
    FUNCTION(state_without)                                                                                         \
    FUNCTION(state_place)                                                                                           \
    FUNCTION(state_refused)                                                                                         \
    FUNCTION(state_set_link)                                                                                        \
    FUNCTION(state_areas)                                                                                           \
    FUNCTION(areas_count)                                                                                           \
    FUNCTION(areas_nodes)                                                                                           \
    FUNCTION(areas_free)                                                                                            \
    FUNCTION(request_init)                                                                                          \
    FUNCTION(decision_nodes)                                                                                        \
    FUNCTION(decision_links)                                                                                        \
    FUNCTION(decision_spare)                                                                                        \
    FUNCTION(decision_bandwidth_share)                                                                              \
    FUNCTION(decision_free)

typedef struct {
#define FUNCTION(name) __typeof__(topolane_##name) *name;
    ENGINE_FUNCTIONS(FUNCTION)
#undef FUNCTION
} Engine;

/* Loads the library permanently. Returns NULL, or a sentence that the caller frees. */
char *engine_load(Engine *engine, const char *path);

#endif
