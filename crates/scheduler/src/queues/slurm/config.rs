//! What of a cluster's configuration the queue `slurm` reads, as JSON.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use topolane_fabric::{Fabric, InputError, NodeSet, expand};

/// Weights and times of the multifactor priority.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {
    /// Of the time for which a job has been eligible.
    pub weight_age: f64,
    /// Of the share that its user has left.
    pub weight_fair_share: f64,
    /// Of its nodes and processors.
    pub weight_job_size: f64,
    /// Of its partition.
    pub weight_partition: f64,
    /// Of its QOS.
    pub weight_qos: f64,
    /// Age that counts in full, seconds.
    pub max_age: f64,
    /// Seconds after which usage counts by half; 0 for never less.
    pub half_life: f64,
    /// Seconds between two computations of usage and priorities.
    pub period: f64,
    /// Whether small jobs get the factor that large jobs get otherwise.
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

/// When the two schedulers run, and how far they look. Times in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Schedulers {
    /// Between two passes of the main scheduler over the whole queue.
    pub interval: f64,
    /// Between a pass of the main scheduler and the next one because of a submission.
    pub submission_delay: f64,
    /// How long the epilogue runs on a job's nodes, which are free only then; none if there is no epilogue.
    pub epilog: Option<f64>,
    /// Jobs that the main scheduler looks at after an event.
    pub depth: usize,
    /// Between two passes of backfill.
    pub backfill_interval: f64,
    /// To which times of promises are rounded.
    pub backfill_resolution: f64,
    /// How far ahead promises are made.
    pub backfill_window: f64,
    /// Jobs that a pass of backfill looks at.
    pub backfill_depth: usize,
    /// Of one user; 0 for all.
    pub backfill_depth_user: usize,
    /// Of one partition; 0 for all.
    pub backfill_depth_partition: usize,
    /// After a job's run is ended for another job or by a failure, it may start again only then.
    pub requeue_after: f64,
    /// Whether backfill promises licences too, and nodes and licences of running jobs until their walltime.
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
            backfill_licenses: false,
        }
    }
}

/// What lets one job preempt another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PreemptBy {
    /// Its QOS names the other's.
    Qos,
    /// Its partition has a higher tier.
    Partition,
}

/// What becomes of a job that gives way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PreemptMode {
    /// It does not give way.
    Off,
    /// It waits again, and later starts with its full time.
    #[default]
    Requeue,
    /// It ends.
    Cancel,
}

/// How running jobs make room for others. Times in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preemption {
    /// What lets one job preempt another; none: nothing does.
    pub by: Option<PreemptBy>,
    /// What becomes of jobs whose QOS or partition does not say so.
    pub mode: PreemptMode,
    /// For how long after its start no job gives way whose QOS does not say so.
    pub exempt: f64,
    /// After a job has preempted others, it does so again only then.
    pub again: f64,
    /// Whether jobs that started last give way first; otherwise those of low QOS or tier.
    pub youngest_first: bool,
    /// How often victims are reordered, to need fewer.
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

/// A partition.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Hostlist of its nodes; none for all.
    pub nodes: Option<String>,
    /// Jobs of a higher tier go first, whatever their priority.
    #[serde(default)]
    pub tier: u32,
    /// Its factor in the priority.
    #[serde(default)]
    pub factor: f64,
    /// What becomes of its jobs that give way to a higher tier; none for what the cluster says.
    pub preempt_mode: Option<PreemptMode>,
    /// For how long these keep their nodes, seconds.
    #[serde(default)]
    pub grace: f64,
}

/// What jobs that count together may hold at one time; none for no limit.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Running jobs of all together.
    pub jobs: Option<u64>,
    /// Nodes of all together.
    pub nodes: Option<u64>,
    /// Running jobs of a user.
    pub jobs_per_user: Option<u64>,
    /// Nodes of a user.
    pub nodes_per_user: Option<u64>,
    /// Running jobs of an account.
    pub jobs_per_account: Option<u64>,
    /// Nodes of an account.
    pub nodes_per_account: Option<u64>,
    /// Nodes of a job.
    pub nodes_per_job: Option<u64>,
}

/// A quality of service.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qos {
    /// Its name.
    pub name: String,
    /// Its priority; the highest of all has the factor 1.
    #[serde(default)]
    pub priority: f64,
    /// How many times usage under it counts.
    #[serde(default = "one")]
    pub usage_factor: f64,
    /// What its jobs may hold.
    #[serde(default)]
    pub limits: Limits,
    /// Names of the QOS whose jobs give way to its jobs.
    #[serde(default)]
    pub preempts: Vec<String>,
    /// What becomes of its own jobs that give way; none for what the cluster says.
    pub preempt_mode: Option<PreemptMode>,
    /// For how long after their start they do not give way, seconds; none for what the cluster says.
    pub preempt_exempt: Option<f64>,
    /// For how long its own jobs that give way keep their nodes, seconds.
    #[serde(default)]
    pub grace: f64,
}

fn one() -> f64 {
    1.0
}

/// An account, or a user in one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Association {
    /// The account.
    pub account: String,
    /// The user; empty for the account itself.
    #[serde(default)]
    pub user: String,
    /// The account above an account; empty for the root.
    #[serde(default)]
    pub parent: String,
    /// Its shares among its siblings; none for a user or account without shares of its own.
    pub shares: Option<f64>,
    /// What its jobs may hold: `jobs` and `nodes` of all below it, `jobs_per_user` and `nodes_per_job` of each user.
    #[serde(default)]
    pub limits: Limits,
}

/// Nodes kept for some jobs, or out of service, for a time. Seconds since the workload's second 0.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withheld {
    /// The reservation's name; empty for nodes out of service.
    #[serde(default)]
    pub name: String,
    /// Hostlist; empty for a reservation without nodes, the jobs of which may run on any.
    pub nodes: String,
    /// Licences that only jobs of the reservation may take, by name.
    #[serde(default)]
    pub licenses: BTreeMap<String, u64>,
    /// When it begins.
    pub from: f64,
    /// When it ends; none for never.
    pub until: Option<f64>,
    /// Whether nodes out of service have failed: the jobs on them end when it begins.
    #[serde(default)]
    pub ends_jobs: bool,
}

/// A job of the records that waited and never started.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeverStarted {
    /// Its number.
    pub id: u64,
    /// When it could have started, seconds since the workload's second 0.
    pub submit: f64,
    /// When it left the queue.
    pub until: f64,
    /// Nodes it asked for.
    pub nodes: u32,
    /// Longest time it would have run, seconds.
    pub walltime: f64,
    /// Its partition.
    #[serde(default)]
    pub partition: String,
    /// Its user.
    #[serde(default)]
    pub user: String,
    /// Its account.
    #[serde(default)]
    pub account: String,
    /// Its quality of service.
    #[serde(default)]
    pub qos: String,
    /// What its owner took from its priority.
    #[serde(default)]
    pub nice: i64,
    /// Processors it asked for.
    pub processors: Option<u64>,
    /// Licences it asked for, by name.
    #[serde(default)]
    pub licenses: BTreeMap<String, u64>,
    /// When it got its place among jobs of the same priority; none: when it could have started.
    pub queued: Option<f64>,
}

/// A cluster as the queue `slurm` sees it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmConfig {
    /// Seconds since 1970 of the workload's second 0: promises are rounded to times of the day.
    pub epoch: f64,
    /// When the scheduler began, seconds since second 0. Its periodic tasks run at multiples of their interval after that.
    pub begin: f64,
    /// Nodes of the cluster; 0 for those of the machine.
    pub nodes: u32,
    /// Processors of a node.
    pub processors_per_node: u64,
    /// Of the multifactor priority; all weights 0 for jobs in order of submission.
    pub priority: Priority,
    /// Of the two schedulers.
    pub schedulers: Schedulers,
    /// Partitions; none for one of all nodes.
    pub partitions: Vec<Partition>,
    /// Qualities of service.
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
    /// How running jobs make room for others.
    pub preemption: Preemption,
}

impl SlurmConfig {
    /// Reads the JSON that `topolane workload import` writes.
    ///
    /// # Errors
    /// What is no JSON, an unknown key, a value of another type, a time or a weight that makes no sense; with the line.
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
        ];
        for (what, value) in times.into_iter().chain(graces.map(|grace| ("grace", grace))) {
            if !(value.is_finite() && value >= 0.0) {
                return Err(InputError::whole(format!("{what} {value} is not 0 seconds or more")));
            }
        }
        Ok(config)
    }
}

/// The nodes of a hostlist that the machine has.
pub(super) fn nodes_of(text: &str, fabric: &Fabric) -> Result<NodeSet, InputError> {
    let names = expand(text)?;
    Ok(NodeSet::of(fabric.nodes(), names.iter().filter_map(|name| fabric.node_named(name))))
}

/// Values by name.
///
/// # Errors
/// A name that is there twice.
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
