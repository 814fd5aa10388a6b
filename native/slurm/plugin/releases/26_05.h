/* Slurm 26.05: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_26_05_H
#define TOPOLANE_RELEASES_26_05_H

#define STOCK_ONLY_ENTRIES(ENTRY)                                                                                      \
    ENTRY(int, topology_p_destroy_config, (topology_ctx_t * context), (context))                                       \
    ENTRY(int, topology_p_whole_topo, (bitstr_t * nodes, void *context), (nodes, context))                             \
    ENTRY(bitstr_t *, topology_p_get_bitmap, (char *name, void *context), (name, context))                             \
    ENTRY(bool, topology_p_generate_node_ranking, (topology_ctx_t * context), (context))                               \
    ENTRY(int, topology_p_get_node_addr, (char *node, char **address, char **pattern, void *context),                  \
          (node, address, pattern, context))                                                                           \
    ENTRY(int, topology_p_split_hostlist,                                                                              \
          (hostlist_t * hosts, hostlist_t * **parts, int *count, uint16_t width, void *context),                       \
          (hosts, parts, count, width, context))                                                                       \
    ENTRY(int, topology_p_topoinfo_free, (void *topology), (topology))                                                 \
    ENTRY(int, topology_p_get, (topology_data_t type, void *data, void *context), (type, data, context))               \
    ENTRY(int, topology_p_topoinfo_pack, (void *topology, buf_t *to, uint16_t version), (topology, to, version))       \
    ENTRY(int, topology_p_topoinfo_print, (void *topology, char *nodes, char *unit, char **out),                       \
          (topology, nodes, unit, out))                                                                                \
    ENTRY(int, topology_p_topoinfo_unpack, (void **topology, buf_t *from, uint16_t version),                           \
          (topology, from, version))                                                                                   \
    ENTRY(uint32_t, topology_p_get_fragmentation, (bitstr_t * nodes, void *context), (nodes, context))                 \
    ENTRY(void, topology_p_get_topology_str, (node_record_t * node, char **units, topology_ctx_t *context),            \
          (node, units, context))                                                                                      \
    ENTRY(void, topology_p_jobinfo_pack, (void *info, buf_t *to, uint16_t version), (info, to, version))               \
    ENTRY(int, topology_p_jobinfo_unpack, (void **info, buf_t *from, uint16_t version), (info, from, version))         \
    ENTRY(int, topology_p_eval_node, (topology_eval_t * asked, int node), (asked, node))

#define BUILD_PARAMETERS (topology_ctx_t * context)
#define BUILD_ARGUMENTS (context)
#define BUILD_CONTEXT context

#define ONE_NODE_ENTRIES(ENTRY) ENTRY(bool, topology_p_allow_one_node, (void *context), (context))
#define ALLOWS_ONE_NODE(stock, asked) ((stock)->topology_p_allow_one_node((asked)->tctx->plugin_ctx))
#define EVALUATE_NODE(stock, asked, node) ((stock)->topology_p_eval_node(asked, node))

#define RANK_ENTRIES(ENTRY)                                                                                            \
    ENTRY(int, topology_p_get_rank, (bitstr_t * nodes, uint32_t **ranks, uint32_t *count, void *context),              \
          (nodes, ranks, count, context))

#define NODE_ENTRIES(ENTRY)                                                                                            \
    ENTRY(int, topology_p_add_rm_node, (node_record_t * node, char *unit, topology_ctx_t *context),                    \
          (node, unit, context))

#define JOBINFO_ENTRIES(FREE, GET)                                                                                     \
    FREE(void, topology_p_jobinfo_free, (void *info), (info))                                                          \
    GET(int, topology_p_jobinfo_get, (topology_jobinfo_type_t type, void *info, void *data), (type, info, data))
#define SET_JOBINFO(job, id, info)                                                                                     \
    ((job)->topo_jobinfo = xmalloc(sizeof *(job)->topo_jobinfo), (job)->topo_jobinfo->plugin_id = (id),                \
     (job)->topo_jobinfo->data = (info))
#define SPREADS_SEGMENTS(job) ((job)->bit_flags & SPREAD_SEGMENTS)
#define CONSOLIDATES_SEGMENTS(job) ((job)->bit_flags & CONSOLIDATE_SEGMENTS)
#define KEEPS_NODES(job) IS_JOB_EXPEDITING(job)

#define FINI_TYPE void
#define FINI_RESULT

#define FORGET_JOBINFO(job) (topology_g_jobinfo_free((job)->topo_jobinfo), (job)->topo_jobinfo = NULL)

#define REFUSAL(segments) ((segments) ? ESLURM_TOPO_SEGMENT_NO_FIT : ESLURM_TOPO_NO_FIT)

#endif
