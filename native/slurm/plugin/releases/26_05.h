/* Slurm 26.05: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_26_05_H
#define TOPOLANE_RELEASES_26_05_H

#define ALLOWS_ONE_NODE(stock, asked) ((stock)->allow_one_node((asked)->tctx->plugin_ctx))
#define FORGET_JOBINFO(job) (topology_g_jobinfo_free((job)->topo_jobinfo), (job)->topo_jobinfo = NULL)

#endif
