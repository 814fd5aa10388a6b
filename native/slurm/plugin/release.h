/* Includes of Slurm, and the table of the release that they are of: everything that differs between releases is in
 * releases/YY_MM.h, and no other file here depends on a release.
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

/* A release without a table is refused here: fields and types that the plugin uses may have another meaning in it. A table
 * defines:
 *   ALLOWS_ONE_NODE      whether the stock plugin says that jobs of one node may skip topology_p_eval_nodes
 *   SET_JOBINFO(job, id, info)          stores `info` in the job, under the identity of a plugin
 *   SPREADS_SEGMENTS(job), CONSOLIDATES_SEGMENTS(job)   whether its segments are to lie in different blocks, or close
 *   KEEPS_NODES(job)     whether an ending job keeps all its nodes until it starts again
 *   REFUSAL(segments)    the error whose sentence squeue shows while a job finds no place; SLURM_SUCCESS if there is none
 *   FORGET_JOBINFO(job)  removes what an earlier evaluation stored in the job, as Slurm does before each evaluation */
#define IS_RELEASE(major, minor) (SLURM_VERSION_NUMBER >> 8 == ((major) << 8 | (minor)))
#if IS_RELEASE(24, 11)
#include "releases/24_11.h"
#elif IS_RELEASE(25, 5)
#include "releases/25_05.h"
#elif IS_RELEASE(25, 11)
#include "releases/25_11.h"
#elif IS_RELEASE(26, 5)
#include "releases/26_05.h"
#else
#error "topology/topolane is written for Slurm 24.11, 25.05, 25.11 and 26.05: another release needs a table of its own in native/slurm/plugin/releases (release.h says what it defines)"
#endif

/* Weak, because slurmd and the commands load the plugin too and do not have these. */
#pragma weak job_list
#pragma weak find_job_record
#pragma weak idle_node_bitmap
#pragma weak last_job_update

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
