/* Slurm 24.11: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_24_11_H
#define TOPOLANE_RELEASES_24_11_H

#define ALLOWS_ONE_NODE(stock, asked) false
#define FORGET_JOBINFO(job) ((void)(job))

#endif
