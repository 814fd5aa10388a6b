//! Slurm's main scheduler and backfill, with its priorities, limits, partitions and reservations.

mod backfill;
mod clock;
mod config;
mod jobs;
mod licenses;
mod limits;
mod main_scheduler;
mod order;
mod plan;
mod preempt;
mod priority;
mod retrace;
mod start;
mod usage;
mod withheld;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use topolane_fabric::{Fabric, InputError, NodeSet};
use topolane_placement::Occupancy;

pub use config::{
    Association, Limits, NeverStarted, Partition, PreemptBy, PreemptMode, Preemption, Priority,
    Qos, Schedulers, SlurmConfig, Withheld,
};

pub use retrace::{Because, By, RecordedStart, Retrace, RetraceAnswer, RetraceQuestion};

use crate::queue::{Pass, Queue};
use crate::view::View;
use clock::Clock;
use config::by_name;
use jobs::{JobUsage, Never, WaitingState};
use limits::LimitUse;
use priority::{Factors, FairTree};
use withheld::{PartitionNodes, WithheldNodes};

/// The main scheduler runs this many seconds before priorities that are due at the same time are computed.
const A_MOMENT: f64 = 0.001;

/// Slurm's two schedulers. Without a configuration, there is one partition and jobs go in order of submission.
#[derive(Debug, Clone)]
pub struct Slurm {
    config: SlurmConfig,
    parts: Vec<PartitionNodes>,
    part_of: HashMap<String, usize>,
    reservations: Vec<WithheldNodes>,
    out: Vec<WithheldNodes>,
    /// Times out of service that end jobs and are still to come, in order of time.
    failing: VecDeque<WithheldNodes>,
    /// Jobs that never start, in order of submission.
    never: Arc<[Never]>,
    /// The number of these jobs that have been submitted, and the indices of those still waiting.
    come: usize,
    never_waiting: Vec<usize>,
    factors: Factors,
    fair: FairTree,
    held: LimitUse,
    waiting: FxHashMap<u64, WaitingState>,
    running: FxHashMap<u64, JobUsage>,
    /// Nodes whose jobs have just ended, and the end of the clean-up.
    completing: Vec<(f64, NodeSet)>,
    clock: Clock,
    /// Whether nothing runs and every job was tried, so that only another event can help.
    is_stuck: bool,
    waits: bool,
    /// A reusable state of the machine at later times, for backfill.
    scratch: Option<Occupancy>,
}

impl Default for Slurm {
    fn default() -> Self {
        let config = SlurmConfig::default();
        let held = LimitUse::of(&config);
        Slurm {
            parts: vec![PartitionNodes::default()],
            part_of: HashMap::new(),
            reservations: Vec::new(),
            out: Vec::new(),
            failing: VecDeque::new(),
            never: Arc::default(),
            come: 0,
            never_waiting: Vec::new(),
            factors: Factors::of(&config),
            fair: FairTree::default(),
            held,
            waiting: FxHashMap::default(),
            running: FxHashMap::default(),
            completing: Vec::new(),
            clock: Clock::default(),
            is_stuck: false,
            waits: false,
            scratch: None,
            config,
        }
    }
}

impl Slurm {
    /// Returns the schedulers of a cluster. The machine has all or some of its nodes.
    ///
    /// # Errors
    /// A hostlist that cannot be read, a partition without a node of the machine, or a name that occurs twice.
    pub fn new(config: SlurmConfig, fabric: &Fabric) -> Result<Self, InputError> {
        let mut parts = vec![PartitionNodes::default()];
        let mut names = Vec::new();
        for partition in &config.partitions {
            names.push((partition.name.clone(), parts.len()));
            parts.push(PartitionNodes::of(partition, fabric)?);
        }
        by_name("QOS", config.qos.iter().map(|qos| (qos.name.clone(), ())))?;
        let failing = config.out_of_service.iter().filter(|one| one.ends_jobs);
        let mut failing = WithheldNodes::all(failing, fabric)?;
        failing.sort_by(|a, b| a.from.total_cmp(&b.from));
        let mut never: Vec<Never> = config.never_started.iter().map(Never::of).collect();
        never.sort_by(|a, b| a.submit.total_cmp(&b.submit));
        let config = SlurmConfig {
            nodes: if config.nodes > 0 { config.nodes } else { fabric.nodes() },
            ..config
        };
        Ok(Slurm {
            parts,
            part_of: by_name("partitions", names.into_iter())?,
            reservations: WithheldNodes::all(&config.reservations, fabric)?,
            out: WithheldNodes::all(&config.out_of_service, fabric)?,
            failing: failing.into(),
            never: never.into(),
            factors: Factors::of(&config),
            fair: FairTree::of(&config.associations, config.priority.half_life)?,
            held: LimitUse::of(&config),
            config,
            ..Slurm::default()
        })
    }
}

impl Queue for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let now = view.now;
        self.begin(now);
        if !self.waits {
            self.note_idle_backfill(now);
        }
        self.completing.retain(|(until, _)| *until > now);
        self.fail_nodes(view);
        self.end_graces(view);
        self.compute_priorities(view, now - A_MOMENT);
        let mut refusal = self.run_main_if_due(view);
        self.compute_priorities(view, now);
        self.follow(view);
        if now >= self.clock.epilog {
            let cleaned_up = self.completing.iter().map(|(until, _)| *until);
            self.clock.epilog = cleaned_up.fold(f64::INFINITY, f64::min);
            refusal = self.run_main(view, false);
        }
        let backfills = now >= self.clock.backfill;
        if backfills {
            self.clock.last_backfill = now;
            self.clock.backfill = f64::INFINITY;
            let before = view.running.jobs().len();
            self.run_backfill(view);
            if view.running.jobs().len() > before {
                self.note_change(now);
            }
        }
        self.waits = view.waiting.len() > view.started.len();
        self.is_stuck = view.running.jobs().is_empty()
            && backfills
            && self.clock.main.is_infinite()
            && self.clock.epilog.is_infinite();
        Pass { refusal, ..Pass::default() }
    }

    fn next_pass(&self, now: f64) -> Option<f64> {
        let running = !self.running.is_empty();
        let failure = self.failing.front().filter(|_| running).map(|kept| kept.from);
        let end = [failure, self.next_grace_end()].into_iter().flatten().min_by(f64::total_cmp);
        if !self.waits {
            return end;
        }
        let change = self.next_change(now);
        if self.is_stuck {
            return change;
        }
        let Clock { main, epilog, backfill, last_full, period, .. } = self.clock;
        let full = last_full + self.config.schedulers.interval;
        let due = [main, epilog, backfill, full, period];
        due.into_iter().chain(change).chain(end).min_by(f64::total_cmp).map(|time| time.max(now))
    }
}
