//! The part of a cluster's configuration that the queue `slurm` reads, as JSON.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use topolane_fabric::{Fabric, InputError, NodeSet, expand};

/// Weights and times of Slurm's multifactor priority plugin.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {
    /// Weight of the time for which a job has been eligible.
    pub weight_age: f64,
    /// Weight of the user's remaining fair share.
    pub weight_fair_share: f64,
    /// Weight of the job's nodes and processors.
    pub weight_job_size: f64,
    /// Weight of the job's partition.
    pub weight_partition: f64,
    /// Weight of the job's QOS.
    pub weight_qos: f64,
    /// The age, in seconds, at which the age factor reaches its maximum.
    pub max_age: f64,
    /// The half-life of usage in seconds; 0 if usage does not decay.
    pub half_life: f64,
    /// Seconds between two computations of usage and priorities.
    pub period: f64,
    /// Whether small jobs are favoured instead of large ones.
    pub favor_small: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Priority {
            weight_age: 0.0,
            weight_fair_share: 0.0,
            weight_job_size: 0.0,
            weight_partition: 0.0,
            weight_qos: 0.0,
            max_age: 7.0 * 86_400.0,
            half_life: 7.0 * 86_400.0,
            period: 300.0,
            favor_small: false,
        }
    }
}

/// When the two schedulers run, and how far they look ahead. Times are in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Schedulers {
    /// Time between two passes of the main scheduler over the whole queue.
    pub interval: f64,
    /// The least time between a pass of the main scheduler and the next one caused by a submission.
    pub submission_delay: f64,
    /// How long the epilogue runs on a job's nodes before they become free; `None` if there is no epilogue.
    pub epilog: Option<f64>,
    /// The number of jobs that the main scheduler examines after an event.
    pub depth: usize,
    /// Time between two passes of backfill.
    pub backfill_interval: f64,
    /// The resolution to which times of promises are rounded.
    pub backfill_resolution: f64,
    /// How far ahead promises are made.
    pub backfill_window: f64,
    /// The most jobs that a pass of backfill examines.
    pub backfill_depth: usize,
    /// The most jobs of one user that a pass examines; 0 for no limit.
    pub backfill_depth_user: usize,
    /// The most jobs of one partition that a pass examines; 0 for no limit.
    pub backfill_depth_partition: usize,
    /// How long a requeued job must wait after its run was preempted or failed.
    pub requeue_after: f64,
    /// How long jobs that exceed their walltime are expected to run on: `KillWait` and `OverTimeLimit` together.
    pub over_time: f64,
    /// Whether backfill also reserves licences, and the nodes and licences of running jobs until their walltime.
    pub backfill_licenses: bool,
}

impl Default for Schedulers {
    fn default() -> Self {
        Schedulers {
            interval: 60.0,
            submission_delay: 3.0,
            epilog: None,
            depth: 100,
            backfill_interval: 30.0,
            backfill_resolution: 60.0,
            backfill_window: 86_400.0,
            backfill_depth: 500,
            backfill_depth_user: 0,
            backfill_depth_partition: 0,
            requeue_after: 121.0,
            over_time: 30.0,
            backfill_licenses: false,
        }
    }
}

/// The rule by which one job may preempt another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PreemptBy {
    /// A job may preempt another whose QOS is listed in its own QOS.
    Qos,
    /// A job may preempt another whose partition has a lower tier.
    Partition,
}

/// What happens to a preempted job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PreemptMode {
    /// A job of this mode is never preempted.
    Off,
    /// A preempted job is requeued and later starts with its full time.
    #[default]
    Requeue,
    /// A preempted job is cancelled.
    Cancel,
}

/// How running jobs are preempted. Times are in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preemption {
    /// The rule by which one job may preempt another; `None` for no preemption.
    pub by: Option<PreemptBy>,
    /// What happens to preempted jobs whose QOS and partition do not say.
    pub mode: PreemptMode,
    /// How long after its start a job cannot be preempted, if its QOS does not say.
    pub exempt: f64,
    /// How long a job that has preempted others must wait before it does so again.
    pub again: f64,
    /// Whether the jobs that started last are preempted first; otherwise those of low QOS or tier.
    pub youngest_first: bool,
    /// How often the list of preempted jobs is reordered to need fewer of them.
    pub reorder: usize,
}

impl Default for Preemption {
    fn default() -> Self {
        Preemption {
            by: None,
            mode: PreemptMode::Requeue,
            exempt: 0.0,
            again: 40.0,
            youngest_first: false,
            reorder: 1,
        }
    }
}

/// A Slurm partition.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The name of the partition.
    pub name: String,
    /// Hostlist of its nodes; `None` for all nodes.
    pub nodes: Option<String>,
    /// The tier of the partition: jobs of a higher tier go first, whatever their priority.
    #[serde(default)]
    pub tier: u32,
    /// The partition's factor in the priority of a job.
    #[serde(default)]
    pub factor: f64,
    /// What happens to its jobs when a higher tier preempts them; `None` for the cluster's setting.
    pub preempt_mode: Option<PreemptMode>,
    /// How long preempted jobs keep their nodes, in seconds.
    #[serde(default)]
    pub grace: f64,
}

/// The most that jobs counted together may hold at one time; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Running jobs in total.
    pub jobs: Option<u64>,
    /// Nodes in total.
    pub nodes: Option<u64>,
    /// Running jobs per user.
    pub jobs_per_user: Option<u64>,
    /// Nodes per user.
    pub nodes_per_user: Option<u64>,
    /// Running jobs per account.
    pub jobs_per_account: Option<u64>,
    /// Nodes per account.
    pub nodes_per_account: Option<u64>,
    /// Nodes per job.
    pub nodes_per_job: Option<u64>,
}

/// A quality of service (QOS).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qos {
    /// The name of the QOS.
    pub name: String,
    /// The priority of the QOS; the highest of all QOS has the factor 1.
    #[serde(default)]
    pub priority: f64,
    /// The factor by which its usage counts.
    #[serde(default = "one")]
    pub usage_factor: f64,
    /// The limits of its jobs.
    #[serde(default)]
    pub limits: Limits,
    /// Names of the QOS whose jobs its jobs may preempt.
    #[serde(default)]
    pub preempts: Vec<String>,
    /// What happens to its own jobs when they are preempted; `None` for the cluster's setting.
    pub preempt_mode: Option<PreemptMode>,
    /// How long after their start its jobs cannot be preempted, in seconds; `None` for the cluster's setting.
    pub preempt_exempt: Option<f64>,
    /// How long its preempted jobs keep their nodes, in seconds.
    #[serde(default)]
    pub grace: f64,
}

fn one() -> f64 {
    1.0
}

/// An account, or a user in an account.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Association {
    /// The account.
    pub account: String,
    /// The user; empty if this is the account itself.
    #[serde(default)]
    pub user: String,
    /// The parent account; empty for the root.
    #[serde(default)]
    pub parent: String,
    /// The shares of the user or account among its siblings; `None` if it has no shares of its own.
    pub shares: Option<f64>,
    /// The limits of its jobs: `jobs` and `nodes` in total for it and all below it, `jobs_per_user` and `nodes_per_job`
    /// for each user.
    #[serde(default)]
    pub limits: Limits,
}

/// Nodes that are reserved for some jobs, or out of service, for a time. Times are in seconds since second 0 of the
/// workload.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withheld {
    /// The name of the reservation; empty for nodes out of service.
    #[serde(default)]
    pub name: String,
    /// Hostlist of the nodes. Empty for a reservation without nodes, whose jobs may run on any node.
    pub nodes: String,
    /// Licences that only jobs of the reservation may use, by name.
    #[serde(default)]
    pub licenses: BTreeMap<String, u64>,
    /// When the reservation or the outage begins.
    pub from: f64,
    /// When the reservation or the outage ends; `None` for never.
    pub until: Option<f64>,
    /// Whether nodes out of service have failed, so that the jobs on them end when it begins.
    #[serde(default)]
    pub ends_jobs: bool,
}

/// A job of the records that waited and never started.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeverStarted {
    /// The job number.
    pub id: u64,
    /// When the job became eligible to start, in seconds since second 0 of the workload.
    pub submit: f64,
    /// When the job left the queue.
    pub until: f64,
    /// Nodes that it asked for.
    pub nodes: u32,
    /// The walltime in seconds.
    pub walltime: f64,
    /// The partition of the job.
    #[serde(default)]
    pub partition: String,
    /// The user of the job.
    #[serde(default)]
    pub user: String,
    /// The account of the job.
    #[serde(default)]
    pub account: String,
    /// The quality of service of the job.
    #[serde(default)]
    pub qos: String,
    /// The amount that the user subtracted from its priority (`nice`).
    #[serde(default)]
    pub nice: i64,
    /// Processors that it asked for.
    pub processors: Option<u64>,
    /// Licences that it asked for, by name.
    #[serde(default)]
    pub licenses: BTreeMap<String, u64>,
    /// The time that orders it among jobs of the same priority; `None`: the time it became eligible.
    pub queued: Option<f64>,
}

/// The configuration of a cluster, as the queue `slurm` uses it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmConfig {
    /// Second 0 of the workload as seconds since 1970. Promises are rounded to times of day.
    pub epoch: f64,
    /// When the scheduler began, in seconds since second 0. Its periodic tasks run at multiples of their interval after
    /// that.
    pub begin: f64,
    /// Nodes of the cluster; 0 to use the number of nodes of the machine.
    pub nodes: u32,
    /// Processors of a node.
    pub processors_per_node: u64,
    /// Weights of the multifactor priority; with all weights 0, jobs go in order of submission.
    pub priority: Priority,
    /// The times of the two schedulers.
    pub schedulers: Schedulers,
    /// Partitions; if empty, one partition of all nodes.
    pub partitions: Vec<Partition>,
    /// Qualities of service (QOS).
    pub qos: Vec<Qos>,
    /// Accounts and users.
    pub associations: Vec<Association>,
    /// Reservations.
    pub reservations: Vec<Withheld>,
    /// Nodes out of service.
    pub out_of_service: Vec<Withheld>,
    /// Jobs that waited and never started.
    pub never_started: Vec<NeverStarted>,
    /// Licences of the cluster, by name.
    pub licenses: BTreeMap<String, u64>,
    /// How running jobs are preempted.
    pub preemption: Preemption,
}

impl SlurmConfig {
    /// Reads the JSON that `topolane workload import` writes.
    ///
    /// # Errors
    /// Invalid JSON, an unknown key, a value of the wrong type, or an impossible time or weight; with the line.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let config: SlurmConfig = serde_json::from_str(text)
            .map_err(|error| InputError::at(error.line(), error.to_string()))?;
        let Schedulers { interval, backfill_interval, backfill_resolution, .. } = config.schedulers;
        for (what, value) in [
            ("schedulers.interval", interval),
            ("schedulers.backfill_interval", backfill_interval),
            ("schedulers.backfill_resolution", backfill_resolution),
            ("priority.period", config.priority.period),
            ("priority.max_age", config.priority.max_age),
        ] {
            if !(value.is_finite() && value >= 1.0) {
                return Err(InputError::whole(format!("{what} {value} is not 1 second or more")));
            }
        }
        let graces = config.partitions.iter().map(|one| one.grace);
        let graces = graces.chain(config.qos.iter().map(|one| one.grace));
        let times = [
            ("schedulers.submission_delay", config.schedulers.submission_delay),
            ("schedulers.epilog", config.schedulers.epilog.unwrap_or(0.0)),
            ("schedulers.backfill_window", config.schedulers.backfill_window),
            ("priority.half_life", config.priority.half_life),
            ("preemption.exempt", config.preemption.exempt),
            ("preemption.again", config.preemption.again),
            ("schedulers.requeue_after", config.schedulers.requeue_after),
            ("schedulers.over_time", config.schedulers.over_time),
        ];
        for (what, value) in times.into_iter().chain(graces.map(|grace| ("grace", grace))) {
            if !(value.is_finite() && value >= 0.0) {
                return Err(InputError::whole(format!("{what} {value} is not 0 seconds or more")));
            }
        }
        Ok(config)
    }
}

/// The nodes of a hostlist that are on the machine.
pub(super) fn nodes_of(text: &str, fabric: &Fabric) -> Result<NodeSet, InputError> {
    let names = expand(text)?;
    Ok(NodeSet::of(fabric.nodes(), names.iter().filter_map(|name| fabric.node_named(name))))
}

/// Collects values by name.
///
/// # Errors
/// A name that occurs twice.
pub(super) fn by_name<T>(
    what: &str,
    named: impl Iterator<Item = (String, T)>,
) -> Result<HashMap<String, T>, InputError> {
    let mut found = HashMap::new();
    for (name, value) in named {
        if found.contains_key(&name) {
            return Err(InputError::whole(format!("two {what} are called {name}")));
        }
        found.insert(name, value);
    }
    Ok(found)
}
