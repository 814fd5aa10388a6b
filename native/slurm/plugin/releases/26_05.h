/* Slurm 26.05: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_26_05_H
#define TOPOLANE_RELEASES_26_05_H

#define ALLOWS_ONE_NODE(stock, asked) ((stock)->allow_one_node((asked)->tctx->plugin_ctx))
#define SET_JOBINFO(job, id, info)                                                                                     \
    ((job)->topo_jobinfo = xmalloc(sizeof *(job)->topo_jobinfo), (job)->topo_jobinfo->plugin_id = (id),                \
     (job)->topo_jobinfo->data = (info))
#define SPREADS_SEGMENTS(job) ((job)->bit_flags & SPREAD_SEGMENTS)
#define CONSOLIDATES_SEGMENTS(job) ((job)->bit_flags & CONSOLIDATE_SEGMENTS)
#define KEEPS_NODES(job) IS_JOB_EXPEDITING(job)
#define REFUSAL(segments) ((segments) ? ESLURM_TOPO_SEGMENT_NO_FIT : ESLURM_TOPO_NO_FIT)
#define FORGET_JOBINFO(job) (topology_g_jobinfo_free((job)->topo_jobinfo), (job)->topo_jobinfo = NULL)

#endif
