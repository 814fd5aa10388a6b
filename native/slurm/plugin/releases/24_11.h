/* Slurm 24.11: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_24_11_H
#define TOPOLANE_RELEASES_24_11_H

#define ALLOWS_ONE_NODE(stock, asked) false
#define SET_JOBINFO(job, id, info) ((void)(job), (void)(id), (void)(info))
#define SPREADS_SEGMENTS(job) ((void)(job), false)
#define CONSOLIDATES_SEGMENTS(job) ((void)(job), false)
#define KEEPS_NODES(job) ((void)(job), false)
#define REFUSAL(segments) ((void)(segments), SLURM_SUCCESS)
#define FORGET_JOBINFO(job) ((void)(job))

#endif
