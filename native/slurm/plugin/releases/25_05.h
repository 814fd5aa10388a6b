/* Slurm 25.05: what differs from other releases. release.h describes each name. */
#ifndef TOPOLANE_RELEASES_25_05_H
#define TOPOLANE_RELEASES_25_05_H

#define ALLOWS_ONE_NODE(stock, asked) false
#define FORGET_JOBINFO(job) ((void)(job))

#endif
