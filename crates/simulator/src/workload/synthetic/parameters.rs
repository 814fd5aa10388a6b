//! The parameters of a month of jobs.

/// Natural logarithms of run times: one of two gamma distributions, the first more often for
/// narrow jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyperGamma {
    /// Shape and scale of the short jobs' logarithms.
    pub short: (f64, f64),
    /// Shape and scale of the long jobs' logarithms.
    pub long: (f64, f64),
    /// Share of short jobs among jobs of no nodes.
    pub short_share: f64,
    /// What every node takes from that share.
    pub short_share_per_node: f64,
}

/// A month to make up.
#[derive(Debug, Clone, PartialEq)]
pub struct Month {
    /// Name of the workload.
    pub name: String,
    /// Unix time of its first second: midnight at the site.
    pub epoch: f64,
    /// Seconds from UTC to the site's time.
    pub utc_offset: f64,
    /// Weekday of the first day, 0 for Monday.
    pub first_weekday: u32,
    /// Days from the first submission to the last.
    pub days: u32,
    /// Jobs.
    pub jobs: usize,
    /// Offered load on `machine_nodes`, met by one factor on all run times.
    pub load: f64,
    /// Nodes of the machine the load is for.
    pub machine_nodes: u32,
    /// Share of jobs of one node.
    pub serial_share: f64,
    /// Share of jobs under `narrow_below` nodes.
    pub narrow_share: f64,
    /// Nodes of the narrowest of the wide jobs; at least 3.
    pub narrow_below: u32,
    /// Nodes of the widest job.
    pub widest: u32,
    /// Share of powers of two among jobs of several nodes.
    pub power_of_two_share: f64,
    /// Run times before the load is met.
    pub run: HyperGamma,
    /// Longest run time and longest walltime, seconds.
    pub longest: f64,
    /// Share of jobs that run until their walltime ends them.
    pub killed_share: f64,
    /// When jobs come.
    pub arrivals: Arrivals,
}

/// The rhythm of submissions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrivals {
    /// Shape and scale of the daily cycle, in half hours.
    pub daily: (f64, f64),
    /// Depth of the daily and weekly cycles: 0 for none, 1 for all of them.
    pub cycle: f64,
    /// Submissions of a day of the weekend over those of a weekday.
    pub weekend: f64,
    /// Nodes, over the machine's, that the wide jobs running may hold when another is submitted:
    /// its user holds it back until then. Infinite for users who do not look.
    pub look: f64,
}
