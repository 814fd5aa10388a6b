//! Jobs as a log or a generator gives them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use topolane_fabric::resources::Resources;
use topolane_fabric::{Fabric, InputError, expand};
use topolane_placement::{Attributes, Refusal, Share};

use crate::failures::FailureRate;

const DAY: f64 = 86_400.0;
/// Days of the longest run, 20 years. Its outcome has a row for every minute, and a time beyond is a mistake of the log.
pub(crate) const LONGEST_DAYS: f64 = 7_305.0;

/// One job of a workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    /// The job's number in its log; unique in the workload.
    pub id: u64,
    /// Submission, seconds since the workload's epoch.
    pub submit: f64,
    /// How long it runs, seconds; at least 0.
    pub run: f64,
    /// Requested walltime, seconds; `None` where the log has none.
    pub walltime: Option<f64>,
    /// Nodes it needs; at least 1.
    pub nodes: u32,
    /// What it takes of each node, in the order of the workload's resources.
    pub share: Share,
    /// The types of GPU that will do, if several will: it may use nodes whose GPUs are all of one of them. One type alone is among
    /// what it takes.
    pub gpu_types: Option<Arc<[String]>>,
    /// Nodes of each part of it that must lie in one domain of the machine; `None` for no such parts.
    pub segment: Option<u32>,
    /// When its hold ends, seconds since the workload's epoch: it waits from its submission on, and does not start before.
    pub held_until: Option<f64>,
    /// The highest comes first in the queue; jobs of the same come in order of submission.
    pub priority: f64,
    /// Whose it is, where the log says.
    pub attributes: Option<Arc<Attributes>>,
    /// What really happened to it, where the log says.
    pub recorded: Option<Recorded>,
}

/// Where and when a log says a job ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recorded {
    /// Start, seconds since the workload's epoch.
    pub start: f64,
    /// Hostlist expression of its nodes; empty where the log has none.
    pub hosts: String,
    /// Runs that were ended, after which it ran again, in their order.
    pub earlier: Box<[EarlierRun]>,
}

/// A run of a job after which it ran again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EarlierRun {
    /// Start, seconds since the workload's epoch.
    pub start: f64,
    /// How long it ran, seconds.
    pub run: f64,
    /// Nodes that it had.
    pub nodes: u32,
}

/// Jobs in order of submission, and the records that the reader skipped.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// Name shown in tables: the preset or the file's stem.
    pub name: String,
    /// Unix time of the workload's epoch (second 0); 0 where unknown.
    pub epoch: f64,
    /// Offset of local time from UTC at the site, seconds.
    pub utc_offset: f64,
    /// Cores of a node by which processor counts were turned into nodes; 1 where nodes were given.
    pub cores_per_node: u32,
    /// The resources that jobs ask for, by name.
    pub resources: Resources,
    /// How often nodes fail where the jobs ran; `None` where unknown.
    pub failures: Option<FailureRate>,
    /// The jobs, by (submit, position in the log).
    pub jobs: Vec<Job>,
    /// Records skipped, by reason, e.g. "never ran": 4,588.
    pub left_out: BTreeMap<String, u64>,
    /// Jobs that a reader changed, by what was wrong with them and what was done.
    pub changed: BTreeMap<String, u64>,
    /// Numbers that the log does not give and that change results, a sentence each.
    pub assumed: Vec<String>,
}

impl Workload {
    /// What a job takes of each node of a machine.
    ///
    /// # Errors
    /// A resource that the machine does not count: no node has any of it.
    pub fn share_on(&self, job: &Job, fabric: &Fabric) -> Result<Share, Refusal> {
        match &job.share {
            Share::Whole => Ok(Share::Whole),
            Share::Part(amounts) => {
                Ok(Share::Part(amounts.reordered(&self.resources, fabric.resources())?))
            }
        }
    }

    /// Refuses times that no run lasts for: a job ends this long after the first submission at the earliest, whatever the machine.
    ///
    /// # Errors
    /// The first such job.
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

    /// How many nodes the log names, and how many of these the machine does not have. A list that cannot be read names none.
    pub fn strangers(&self, fabric: &Fabric) -> (usize, usize) {
        let recorded = self.jobs.iter().filter_map(|job| job.recorded.as_ref());
        let lists: HashSet<&str> = recorded.map(|recorded| recorded.hosts.as_str()).collect();
        let lists = lists.into_iter().filter(|list| !list.is_empty());
        let names: HashSet<String> = lists.filter_map(|list| expand(list).ok()).flatten().collect();
        let missing = names.iter().filter(|name| fabric.node_named(name).is_none()).count();
        (names.len(), missing)
    }

    /// Jobs without a requested walltime.
    pub fn without_walltime(&self) -> usize {
        self.jobs.iter().filter(|job| job.walltime.is_none()).count()
    }

    /// Sum of nodes x run time over all jobs, node-seconds.
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

    /// Offered load: work over (machine nodes x span of submissions). A job that takes parts of nodes counts with all of them.
    pub fn load(&self, machine_nodes: u32) -> f64 {
        self.work() / (f64::from(machine_nodes) * self.span())
    }
}
