//! Jobs as a log or a generator describes them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use topolane_fabric::resources::Resources;
use topolane_fabric::{Fabric, InputError, expand};
use topolane_placement::{Attributes, Refusal, Share};

use crate::failures::FailureRate;

const DAY: f64 = 86_400.0;
/// The longest simulated time in days: 20 years. The output has a row for every minute, and longer times are mistakes
/// of the log.
pub(crate) const LONGEST_DAYS: f64 = 7_305.0;

/// One job of a workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    /// The job's number in its log; unique in the workload.
    pub id: u64,
    /// Submission time in seconds since the workload's epoch.
    pub submit: f64,
    /// Run time in seconds; at least 0.
    pub run: f64,
    /// Requested walltime in seconds; `None` if the log has none.
    pub walltime: Option<f64>,
    /// The number of nodes; at least 1.
    pub nodes: u32,
    /// What the job takes on each node, in the order of the workload's resources.
    pub share: Share,
    /// Several GPU types, any one of which the job can use: it may use nodes whose GPUs are all of one of them. A
    /// single type is part of `share` instead.
    pub gpu_types: Option<Arc<[String]>>,
    /// The nodes of each segment, which must lie in one domain of the machine; `None` for no segments.
    pub segment: Option<u32>,
    /// The end of its hold, in seconds since the workload's epoch. It waits in the queue from its submission, but
    /// cannot start before.
    pub held_until: Option<f64>,
    /// The highest priority comes first in the queue; jobs of the same priority go in order of submission.
    pub priority: f64,
    /// The owner and other attributes, if the log has them.
    pub attributes: Option<Arc<Attributes>>,
    /// What really happened to the job, if the log says.
    pub recorded: Option<RecordedRun>,
    /// What the log says of it besides, which decides nothing; `None` if that is nothing.
    pub details: Option<Arc<Details>>,
}

/// What a log says of a job that decides nothing, and that may be the reason for its wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Details {
    /// The name of its partition; empty where unknown.
    pub partition: Arc<str>,
    /// Whether it was eligible only after its submission.
    pub is_held: bool,
    /// Whether it had a reservation.
    pub is_reserved: bool,
    /// Whether a limit of its QOS, its association or its array kept it waiting.
    pub is_limited: bool,
}

impl Details {
    /// Reads the texts that Slurm writes for a reservation and for the reason of a wait.
    pub(super) fn new(partition: Arc<str>, is_held: bool, reservation: &str, why: &str) -> Self {
        let begins = |words: &[&str]| words.iter().any(|word| why.starts_with(word));
        Details {
            partition,
            is_held: is_held || begins(&["JobHeld", "Dependency", "BeginTime"]),
            is_reserved: !["", "0"].contains(&reservation),
            is_limited: begins(&["QOS", "Assoc", "JobArrayTaskLimit"]),
        }
    }
}

/// Where and when a job ran according to a log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedRun {
    /// Start in seconds since the workload's epoch.
    pub start: f64,
    /// Hostlist expression of its nodes; empty if the log has none.
    pub hosts: String,
    /// Earlier runs of the job, in order; each was ended, and the job ran again.
    pub earlier: Box<[EarlierRun]>,
}

/// A run of a job that was ended, after which the job ran again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EarlierRun {
    /// Start in seconds since the workload's epoch.
    pub start: f64,
    /// Run time in seconds.
    pub run: f64,
    /// The number of nodes.
    pub nodes: u32,
}

/// Jobs in order of submission, and counts of the records that the reader skipped.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// The name shown in tables: that of the preset or of the file.
    pub name: String,
    /// Unix time of second 0 of the workload; 0 if unknown.
    pub epoch: f64,
    /// Offset of the site's local time from UTC, in seconds.
    pub utc_offset: f64,
    /// The cores per node used to convert processors to nodes; 1 if the log has nodes.
    pub cores_per_node: u32,
    /// The resources that jobs ask for, by name.
    pub resources: Resources,
    /// How often nodes fail on the machine of the log; `None` if unknown.
    pub failures: Option<FailureRate>,
    /// The jobs, sorted by submission, then by position in the log.
    pub jobs: Vec<Job>,
    /// Records skipped, by reason, e.g. "never ran": 4,588.
    pub left_out: BTreeMap<String, u64>,
    /// Jobs that the reader changed, by what was wrong and what was done.
    pub changed: BTreeMap<String, u64>,
    /// Assumptions that change results, because the log has no number; a sentence each.
    pub assumed: Vec<String>,
}

impl Workload {
    /// Returns what a job takes on each node of a machine.
    ///
    /// # Errors
    /// A resource that no node of the machine has.
    pub fn share_on(&self, job: &Job, fabric: &Fabric) -> Result<Share, Refusal> {
        match &job.share {
            Share::Whole => Ok(Share::Whole),
            Share::Part(amounts) => {
                Ok(Share::Part(amounts.reordered(&self.resources, fabric.resources())?))
            }
        }
    }

    /// Checks that no job ends later than the longest simulated time, on any machine.
    ///
    /// # Errors
    /// Names the first job that does.
    pub fn check_times(&self) -> Result<(), InputError> {
        let first = self.jobs.first().map_or(0.0, |job| job.submit);
        for job in &self.jobs {
            let lasts = job.run.min(job.walltime.unwrap_or(f64::INFINITY));
            let days = (job.submit + lasts - first) / DAY;
            if days > LONGEST_DAYS {
                let message = format!(
                    "job {} ends {days:.0} days after the first submission, more than 20 years: a time of the log is wrong",
                    job.id
                );
                return Err(InputError::whole(message));
            }
        }
        Ok(())
    }

    /// The number of nodes that the log names, and how many of them the machine does not have. A list that cannot be
    /// read counts no nodes.
    pub fn strangers(&self, fabric: &Fabric) -> (usize, usize) {
        let recorded = self.jobs.iter().filter_map(|job| job.recorded.as_ref());
        let lists: HashSet<&str> = recorded.map(|recorded| recorded.hosts.as_str()).collect();
        let lists = lists.into_iter().filter(|list| !list.is_empty());
        let names: HashSet<String> = lists.filter_map(|list| expand(list).ok()).flatten().collect();
        let missing = names.iter().filter(|name| fabric.node_named(name).is_none()).count();
        (names.len(), missing)
    }

    /// The number of jobs without a requested walltime.
    pub fn without_walltime(&self) -> usize {
        self.jobs.iter().filter(|job| job.walltime.is_none()).count()
    }

    /// The sum of nodes x run time over all jobs, in node-seconds.
    pub fn work(&self) -> f64 {
        self.jobs.iter().map(|job| f64::from(job.nodes) * job.run).sum()
    }

    /// Seconds from the first submission to the last.
    pub fn span(&self) -> f64 {
        match (self.jobs.first(), self.jobs.last()) {
            (Some(first), Some(last)) => last.submit - first.submit,
            _ => 0.0,
        }
    }

    /// Offered load: work divided by (machine nodes x span of submissions). A job that takes parts of nodes counts with
    /// whole nodes.
    pub fn load(&self, machine_nodes: u32) -> f64 {
        self.work() / (f64::from(machine_nodes) * self.span())
    }
}
