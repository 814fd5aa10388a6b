/* Slurm 24.11: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_24_11_H
#define TOPOLANE_RELEASES_24_11_H

#define STOCK_ONLY_ENTRIES(ENTRY)                                                                                      \
    ENTRY(int, topology_p_whole_topo, (bitstr_t * nodes), (nodes))                                                     \
    ENTRY(bitstr_t *, topology_p_get_bitmap, (char *name), (name))                                                     \
    ENTRY(bool, topology_p_generate_node_ranking, (void), ())                                                          \
    ENTRY(int, topology_p_get_node_addr, (char *node, char **address, char **pattern), (node, address, pattern))       \
    ENTRY(int, topology_p_split_hostlist, (hostlist_t * hosts, hostlist_t * **parts, int *count, uint16_t width),      \
          (hosts, parts, count, width))                                                                                \
    ENTRY(int, topology_p_topology_free, (void *topology), (topology))                                                 \
    ENTRY(int, topology_p_get, (topology_data_t type, void *data), (type, data))                                       \
    ENTRY(int, topology_p_topology_pack, (void *topology, buf_t *to, uint16_t version), (topology, to, version))       \
    ENTRY(int, topology_p_topology_print, (void *topology, char *nodes, char **out), (topology, nodes, out))           \
    ENTRY(int, topology_p_topology_unpack, (void **topology, buf_t *from, uint16_t version),                           \
          (topology, from, version))                                                                                   \
    ENTRY(uint32_t, topology_p_get_fragmentation, (bitstr_t * nodes), (nodes))

#define BUILD_PARAMETERS (void)
#define BUILD_ARGUMENTS ()
#define BUILD_CONTEXT NULL

#define ONE_NODE_ENTRIES(ENTRY)
#define ALLOWS_ONE_NODE(stock, asked) false
#define EVALUATE_NODE(stock, asked, node) SLURM_ERROR

#define RANK_ENTRIES(ENTRY)
#define NODE_ENTRIES(ENTRY)

#define JOBINFO_ENTRIES(FREE, GET)
#define SET_JOBINFO(job, id, info) ((void)(job), (void)(id), (void)(info))
#define SPREADS_SEGMENTS(job) ((void)(job), false)
#define CONSOLIDATES_SEGMENTS(job) ((void)(job), false)
#define KEEPS_NODES(job) ((void)(job), false)

#define FINI_TYPE int
#define FINI_RESULT SLURM_SUCCESS

#define FORGET_JOBINFO(job) ((void)(job))

#define REFUSAL(segments) ((void)(segments), SLURM_SUCCESS)

#endif
