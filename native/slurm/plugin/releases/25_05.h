/* Slurm 25.05: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_25_05_H
#define TOPOLANE_RELEASES_25_05_H

#define ALLOWS_ONE_NODE(stock, asked) false
#define SET_JOBINFO(job, id, info) ((void)(job), (void)(id), (void)(info))
#define SPREADS_SEGMENTS(job) ((void)(job), false)
#define CONSOLIDATES_SEGMENTS(job) ((void)(job), false)
#define KEEPS_NODES(job) ((void)(job), false)
#define REFUSAL(segments) ((void)(segments), SLURM_SUCCESS)
#define FORGET_JOBINFO(job) ((void)(job))

#endif
