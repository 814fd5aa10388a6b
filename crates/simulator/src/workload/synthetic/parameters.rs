//! The parameters of a synthetic month.

/// The distribution of the logarithm of run times: one of two gamma distributions. The first is more likely for narrow
/// jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyperGamma {
    /// Shape and scale of the distribution for short jobs.
    pub short: (f64, f64),
    /// Shape and scale of the distribution for long jobs.
    pub long: (f64, f64),
    /// The share of short jobs, extrapolated to zero nodes.
    pub short_share: f64,
    /// By how much this share decreases with each node.
    pub short_share_per_node: f64,
}

/// The parameters of a month.
#[derive(Debug, Clone, PartialEq)]
pub struct Month {
    /// Name of the workload.
    pub name: String,
    /// Unix time of its first second: midnight at the site.
    pub epoch: f64,
    /// Offset of the site's local time from UTC, in seconds.
    pub utc_offset: f64,
    /// Weekday of the first day, 0 for Monday.
    pub first_weekday: u32,
    /// Days from the first submission to the last.
    pub days: u32,
    /// The number of jobs.
    pub jobs: usize,
    /// The offered load on `machine_nodes`; all run times are scaled by one factor to reach it.
    pub load: f64,
    /// The nodes of the machine for which the load is given.
    pub machine_nodes: u32,
    /// The share of jobs with one node.
    pub serial_share: f64,
    /// The share of jobs with fewer than `narrow_below` nodes.
    pub narrow_share: f64,
    /// The nodes of the narrowest wide job; at least 3.
    pub narrow_below: u32,
    /// The nodes of the widest job.
    pub widest: u32,
    /// The share of powers of two among jobs of several nodes.
    pub power_of_two_share: f64,
    /// The distribution of run times before scaling to the load.
    pub run: HyperGamma,
    /// The longest run time and longest walltime, in seconds.
    pub longest: f64,
    /// The share of jobs that run until their walltime ends them.
    pub killed_share: f64,
    /// When jobs are submitted.
    pub arrivals: Arrivals,
}

/// The daily and weekly rhythm of submissions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrivals {
    /// Shape and scale of the daily cycle, in half hours.
    pub daily: (f64, f64),
    /// The depth of the daily and weekly cycles, from 0 (none) to 1 (full).
    pub cycle: f64,
    /// Submissions on a weekend day, relative to a weekday.
    pub weekend: f64,
    /// The nodes that running wide jobs may hold when another wide job is submitted, relative to the machine. Its user
    /// delays the submission until then. Infinite for users who do not look.
    pub look: f64,
}
