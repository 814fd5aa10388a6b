/* Slurm 25.11: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_25_11_H
#define TOPOLANE_RELEASES_25_11_H

#define ALLOWS_ONE_NODE(stock, asked) false
#define FORGET_JOBINFO(job) (topology_g_jobinfo_free((job)->topo_jobinfo), (job)->topo_jobinfo = NULL)

#endif
