/* Slurm 25.11: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_25_11_H
#define TOPOLANE_RELEASES_25_11_H

#define ALLOWS_ONE_NODE(stock, asked) false
#define SET_JOBINFO(job, id, info)                                                                                     \
    ((job)->topo_jobinfo = xmalloc(sizeof *(job)->topo_jobinfo), (job)->topo_jobinfo->plugin_id = (id),                \
     (job)->topo_jobinfo->data = (info))
#define SPREADS_SEGMENTS(job) ((job)->bit_flags & SPREAD_SEGMENTS)
#define CONSOLIDATES_SEGMENTS(job) ((job)->bit_flags & CONSOLIDATE_SEGMENTS)
#define KEEPS_NODES(job) IS_JOB_EXPEDITING(job)
#define REFUSAL(segments) ((void)(segments), SLURM_SUCCESS)
#define FORGET_JOBINFO(job) (topology_g_jobinfo_free((job)->topo_jobinfo), (job)->topo_jobinfo = NULL)

#endif
