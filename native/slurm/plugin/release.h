/* Everything that differs between releases of Slurm: includes, entry points of a topology plugin, and names of fields.
 * No other file here depends on a release.
 *
 * Headers of Slurm are GPL-2.0-or-later, and so is a plugin compiled with them. */
#ifndef TOPOLANE_RELEASE_H
#define TOPOLANE_RELEASE_H

#include <endian.h>

#include "src/common/slurm_xlator.h"

#include "slurm/slurm.h"
#include "slurm/slurm_errno.h"
#include "src/common/bitstring.h"
#include "src/common/job_resources.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/read_config.h"
#include "src/common/run_in_daemon.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/interfaces/topology.h"
#include "src/slurmctld/slurmctld.h"

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 0) || SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
#error "topology/topolane is written for Slurm 24.11; another release needs its entry points in release.h"
#endif

/* Weak, because slurmd and the commands load the plugin too and do not have these. */
#pragma weak job_list
#pragma weak find_job_record
#pragma weak idle_node_bitmap
#pragma weak last_job_update

/* Entry points that are only passed on to the stock plugin: type, name, parameters, arguments. */
#define STOCK_ONLY_ENTRIES(ENTRY)                                                                                       \
    ENTRY(int, topology_p_whole_topo, (bitstr_t * nodes), (nodes))                                                  \
    ENTRY(bitstr_t *, topology_p_get_bitmap, (char *name), (name))                                                  \
    ENTRY(bool, topology_p_generate_node_ranking, (void), ())                                                       \
    ENTRY(int, topology_p_get_node_addr, (char *node, char **address, char **pattern), (node, address, pattern))    \
    ENTRY(int, topology_p_split_hostlist, (hostlist_t * hosts, hostlist_t * **parts, int *count, uint16_t width),   \
          (hosts, parts, count, width))                                                                             \
    ENTRY(int, topology_p_topology_free, (void *topology), (topology))                                              \
    ENTRY(int, topology_p_get, (topology_data_t type, void *data), (type, data))                                    \
    ENTRY(int, topology_p_topology_pack, (void *topology, buf_t *to, uint16_t version), (topology, to, version))    \
    ENTRY(int, topology_p_topology_print, (void *topology, char *nodes, char **out), (topology, nodes, out))        \
    ENTRY(int, topology_p_topology_unpack, (void **topology, buf_t *from, uint16_t version),                        \
          (topology, from, version))                                                                                \
    ENTRY(uint32_t, topology_p_get_fragmentation, (bitstr_t * nodes), (nodes))

/* All entry points. */
#define STOCK_ENTRIES(ENTRY)                                                                                        \
    ENTRY(int, topology_p_eval_nodes, (topology_eval_t * asked), (asked))                                           \
    ENTRY(int, topology_p_build_config, (void), ())                                                                 \
    STOCK_ONLY_ENTRIES(ENTRY)

/* The 64-bit words of a bitmap, after its two words of administration. Bit 0 is the lowest bit of the lowest byte. Bits
 * beyond the bitmap's size may be set. */
static inline size_t map_words(bitstr_t *map)
{
    return ((size_t)bit_size(map) + 63) / 64;
}
static inline uint64_t map_word(const bitstr_t *map, size_t word)
{
    return le64toh((uint64_t)map[2 + word]);
}

/* A copy of the parts of a node's record that the stock plugin may change while it chooses. */
typedef struct {
    avail_res_t *record;
    avail_res_t before;
    size_t cores;      /* position of the copy of its array avail_cores_per_sock; 0 for none */
    size_t free_cores; /* position of the copy of the bitmap of its free cores; 0 for none */
    size_t free_bytes;
} Kept_Node;

#endif
