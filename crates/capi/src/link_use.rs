//! Which use of links a job counts as, for the jobs that a state holds and for decisions.

/// The job may use all uplinks of the groups that it crosses, but for those that other jobs own. Isolated jobs keep off them.
pub const TOPOLANE_LINKS_SHARED: u32 = 0;
/// No other job may use the links that the job may use: those that it owns, or all uplinks of the groups that it crosses.
pub const TOPOLANE_LINKS_ISOLATED: u32 = 1;
/// The job counts as using no link: it may meet any other job.
pub const TOPOLANE_LINKS_NONE: u32 = 2;
/// On a dragonfly: no other job may use the links between groups that the job may use. Elsewhere as
/// `TOPOLANE_LINKS_SHARED`. Since version 8.
pub const TOPOLANE_LINKS_ISOLATED_GLOBAL: u32 = 3;
