//! Slurm's main scheduler and backfill, with its priorities, limits, partitions and reservations.

mod backfill;
mod config;
mod licenses;
mod limits;
mod plan;
mod preempt;
mod priority;
mod retrace;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;
use topolane_fabric::{Fabric, InputError, NodeSet};
use topolane_placement::{Attributes, Occupancy, Placement, Refusal, Request, Share};

pub use config::{
    Association, Limits, NeverStarted, Partition, PreemptBy, PreemptMode, Preemption, Priority,
    Qos, Schedulers, SlurmConfig, Withheld,
};

pub use retrace::{Answer, Asked, Because, By, RecordedStart, Retrace};

use crate::queue::{Pass, Queue};
use crate::view::View;
use config::{by_name, nodes_of};
use limits::Held;
use preempt::merge_sort;
use priority::{Asks, Factors, FairTree};

/// The main scheduler runs this long before priorities are computed at the same time, seconds.
const A_MOMENT: f64 = 0.001;

/// A partition's nodes and tier, and how its jobs give way.
#[derive(Debug, Clone, Default)]
struct Part {
    /// `None`: all.
    nodes: Option<NodeSet>,
    tier: u32,
    preempt_mode: Option<PreemptMode>,
    grace: f64,
}

/// Nodes and licences withheld for a time.
#[derive(Debug, Clone)]
struct Kept {
    name: Arc<str>,
    nodes: NodeSet,
    /// Whether it is a reservation without nodes, the jobs of which may run on any.
    is_of_any: bool,
    licenses: Vec<(Arc<str>, u64)>,
    from: f64,
    until: f64,
}

impl Kept {
    /// Whether they are withheld at any time from `start` on and before `end`, or at `start` if that is no later.
    fn meets(&self, start: f64, end: f64) -> bool {
        (self.from < end || self.from <= start) && self.until > start
    }
}

/// A job that waits in the records and never starts.
#[derive(Debug, Clone)]
struct Never {
    request: Request,
    submit: f64,
    until: f64,
}

/// A job that runs, as far as usage goes.
#[derive(Debug, Clone)]
struct Ran {
    whose: Arc<Attributes>,
    nodes: NodeSet,
    processors: u64,
    /// Up to when its usage has been counted.
    counted: f64,
    /// When the grace time ends that it has because it gives way; infinite if it does not.
    leaves: f64,
}

/// A job that waits.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// Since when it is eligible.
    since: f64,
    /// From when on the schedulers see it.
    seen: f64,
    priority: f64,
    /// Whether backfill has found nodes for it. From then on all processors of its nodes count in its priority.
    is_tested: bool,
    part: usize,
    /// When it last preempted others.
    preempted: f64,
}

/// A job in its turn: in the queue, or of those that never start.
#[derive(Debug)]
struct Turn<'a> {
    /// Its place in the queue; `None` for a job that never starts.
    index: Option<usize>,
    request: &'a Request,
    whose: Arc<Attributes>,
    standing: Standing,
}

/// When something is due. Infinite: never, unless something happens.
#[derive(Debug, Clone, Default)]
struct Clock {
    /// When the main scheduler runs because a job came or ended.
    main: f64,
    /// When it runs because an epilogue ends.
    epilog: f64,
    /// When it last ran for any other reason.
    last_main: f64,
    last_full: f64,
    backfill: f64,
    last_backfill: f64,
    /// When usage and priorities are next computed.
    period: f64,
    /// When they last were.
    last_period: f64,
    has_begun: bool,
}

/// Slurm's two schedulers. Without a configuration they know one partition, and jobs go in order of submission.
#[derive(Debug, Clone)]
pub struct Slurm {
    config: SlurmConfig,
    parts: Vec<Part>,
    part_of: HashMap<String, usize>,
    reservations: Vec<Kept>,
    out: Vec<Kept>,
    /// Those of them that end jobs, by time; without those that have.
    failing: VecDeque<Kept>,
    /// By time of submission.
    never: Arc<[Never]>,
    /// How many of these have come, and which of them still wait.
    come: usize,
    never_waiting: Vec<usize>,
    factors: Factors,
    fair: FairTree,
    held: Held,
    waiting: FxHashMap<u64, Standing>,
    running: FxHashMap<u64, Ran>,
    /// Nodes whose jobs have just ended, and until when they are cleaned up.
    completing: Vec<(f64, NodeSet)>,
    clock: Clock,
    /// Whether all was tried on a machine where nothing runs, and only another event can help.
    is_stuck: bool,
    waits: bool,
    /// Memory for the machine at later times, as backfill sees it.
    scratch: Option<Occupancy>,
}

impl Default for Slurm {
    fn default() -> Self {
        let config = SlurmConfig::default();
        let held = Held::of(&config);
        Slurm {
            parts: vec![Part::default()],
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
    /// The schedulers of a cluster, on a machine that has its nodes or some of them.
    ///
    /// # Errors
    /// A hostlist that cannot be read, a partition without a node of the machine, a name that is there twice.
    pub fn new(config: SlurmConfig, fabric: &Fabric) -> Result<Self, InputError> {
        let mut parts = vec![Part::default()];
        let mut names = Vec::new();
        for partition in &config.partitions {
            let in_partition = |message: String| {
                InputError::whole(format!("partition {}: {message}", partition.name))
            };
            let nodes = partition.nodes.as_deref().map(|text| nodes_of(text, fabric)).transpose();
            let nodes = nodes.map_err(|error| in_partition(error.message))?;
            if nodes.as_ref().is_some_and(|nodes| nodes.count() == 0) {
                let message = format!("machine {} has none of its nodes", fabric.name());
                return Err(in_partition(message));
            }
            names.push((partition.name.clone(), parts.len()));
            let Partition { tier, preempt_mode, grace, .. } = *partition;
            parts.push(Part { nodes, tier, preempt_mode, grace });
        }
        by_name("QOS", config.qos.iter().map(|qos| (qos.name.clone(), ())))?;
        let kept = |one: &Withheld| {
            Ok(Kept {
                name: Arc::from(&*one.name),
                nodes: nodes_of(&one.nodes, fabric)?,
                is_of_any: one.nodes.is_empty(),
                licenses: licenses::named(&one.licenses),
                from: one.from,
                until: one.until.unwrap_or(f64::INFINITY),
            })
        };
        let all = |withheld: &[Withheld]| -> Result<Vec<Kept>, InputError> {
            withheld.iter().map(kept).collect()
        };
        let failing = config.out_of_service.iter().filter(|one| one.ends_jobs).map(kept);
        let mut failing = failing.collect::<Result<Vec<Kept>, InputError>>()?;
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
            reservations: all(&config.reservations)?,
            out: all(&config.out_of_service)?,
            failing: failing.into(),
            never: never.into(),
            factors: Factors::of(&config),
            fair: FairTree::of(&config.associations, config.priority.half_life)?,
            held: Held::of(&config),
            config,
            ..Slurm::default()
        })
    }

    /// The nodes of a partition that are in service and not kept out of it now.
    fn usable(&self, view: &View<'_>) -> NodeSet {
        let mut nodes = view.occupancy.in_service().clone();
        for kept in self.out.iter().filter(|kept| kept.meets(view.now, view.now)) {
            nodes.subtract(&kept.nodes);
        }
        nodes
    }

    /// Keeps of `nodes` those of a partition that reservations leave to a job from `start` to `end`, or those of its own
    /// reservation; whether a reservation took any away. `None` if its reservation does not hold then.
    fn keep_allowed(
        &self,
        nodes: &mut NodeSet,
        turn: &Turn<'_>,
        (start, end): (f64, f64),
    ) -> Option<bool> {
        if let Some(part) = &self.parts[turn.standing.part].nodes {
            nodes.intersect(part);
        }
        let own = &turn.whose.reservation;
        let mut is_reduced = false;
        let mut has_own = false;
        for kept in &self.reservations {
            if !own.is_empty() && kept.name == *own {
                has_own |= kept.from <= start && start <= kept.until;
                if !kept.is_of_any {
                    nodes.intersect(&kept.nodes);
                }
            } else if kept.meets(start, end) {
                is_reduced |= nodes.intersects(&kept.nodes);
                nodes.subtract(&kept.nodes);
            }
        }
        let knows_own = self.reservations.iter().any(|kept| kept.name == *own);
        (own.is_empty() || !knows_own || has_own).then_some(is_reduced)
    }

    /// The licences that must be free so that a job can run from `start` on: its own, and as many as other reservations keep of these
    /// at that time. Slurm counts them in `job_test_lic_resv`.
    fn licenses_beside_reservations(
        &self,
        request: &Request,
        whose: &Attributes,
        start: f64,
    ) -> Vec<(Arc<str>, u64)> {
        let end = start + request.walltime;
        let mut needed = whose.licenses.clone();
        let is_other =
            |kept: &&Kept| whose.reservation.is_empty() || kept.name != whose.reservation;
        let others = self.reservations.iter().filter(is_other);
        for kept in others.filter(|kept| kept.meets(start, end)) {
            for (name, number) in &kept.licenses {
                if let Some((_, sum)) = needed.iter_mut().find(|(asked, _)| asked == name) {
                    *sum = sum.saturating_add(*number);
                }
            }
        }
        needed
    }

    /// Whether the licences of a job are free beside those of reservations, if it starts at a time.
    fn has_licenses(&self, request: &Request, whose: &Attributes, start: f64) -> bool {
        whose.licenses.is_empty()
            || self.held.licenses.suffice(&self.licenses_beside_reservations(request, whose, start))
    }

    /// The jobs in the order in which both schedulers look at them: those in reservations, then by tier, priority, submission.
    fn turns<'a>(&self, view: &View<'a>, never: &'a [Never]) -> Vec<Turn<'a>> {
        let turn = |index: Option<usize>, request: &'a Request| {
            let standing = *self.waiting.get(&request.id)?;
            let turn = Turn { index, request, whose: whose(request), standing };
            (standing.seen <= view.now).then_some(turn)
        };
        let waiting = view.waiting.iter().enumerate();
        let mut turns: Vec<Turn<'a>> = waiting
            .filter(|&(index, _)| view.is_visible(index) && !view.has_started(index))
            .filter_map(|(index, waiting)| turn(Some(index), &waiting.request))
            .collect();
        let never = self.never_waiting.iter().map(|&place| &never[place]);
        let never = never.filter(|never| view.now < never.until);
        turns.extend(never.filter_map(|never| turn(None, &never.request)));
        let key = |turn: &Turn<'_>| {
            (!turn.whose.reservation.is_empty(), self.parts[turn.standing.part].tier)
        };
        let order = |a: &Turn<'_>, b: &Turn<'_>| {
            let by_priority = b.standing.priority.total_cmp(&a.standing.priority);
            let by_age = a.standing.since.total_cmp(&b.standing.since);
            key(b).cmp(&key(a)).then(by_priority).then(by_age)
        };
        if self.config.preemption.by.is_none() {
            turns.sort_by(order);
            return turns;
        }
        merge_sort(turns, &|a, b| {
            self.goes_before(a, b) || !self.goes_before(b, a) && order(a, b).is_le()
        })
    }

    /// Sets the clock at the first pass.
    fn begin(&mut self, now: f64) {
        if self.clock.has_begun {
            return;
        }
        let period = self.config.priority.period;
        let last_period = self.last(period, now);
        self.clock = Clock {
            main: f64::INFINITY,
            epilog: f64::INFINITY,
            last_main: f64::NEG_INFINITY,
            last_full: self.last(self.config.schedulers.interval, now),
            backfill: f64::INFINITY,
            last_backfill: self.last(self.config.schedulers.backfill_interval, now),
            period: last_period + period,
            last_period,
            has_begun: true,
        };
    }

    /// Takes note of what happened since the last pass: ends, starts by others, arrivals.
    fn follow(&mut self, view: &View<'_>) {
        let now = view.now;
        for id in self.gone(view) {
            let Some(ran) = self.running.remove(&id) else { continue };
            self.held.remove(&ran.whose, &ran.nodes);
            self.charge(&ran, now);
            self.clean_up(ran.nodes, now);
        }
        if view.changed {
            let others = view.running.jobs().iter();
            let others = others.filter(|job| !self.running.contains_key(&job.id));
            for job in others.cloned().collect::<Vec<_>>() {
                self.note_start(&job.request, job.placement.nodes(), job.start);
            }
            self.note_change(now);
        }
        let unknown = if view.changed { 0 } else { view.fresh };
        for (index, waiting) in view.waiting.iter().enumerate().skip(unknown) {
            if view.is_visible(index) && !view.has_started(index) {
                self.arrive(&waiting.request, now);
            }
        }
        self.follow_never_started(now);
        if view.changed {
            self.forget_cancelled(view);
        }
    }

    /// Jobs that never start come and leave.
    fn follow_never_started(&mut self, now: f64) {
        let never = Arc::clone(&self.never);
        while let Some(one) = never.get(self.come).filter(|one| one.submit <= now) {
            self.arrive(&one.request, one.submit);
            self.never_waiting.push(self.come);
            self.come += 1;
        }
        let waiting = &mut self.waiting;
        self.never_waiting.retain(|&place| {
            let stays = now < never[place].until;
            if !stays {
                waiting.remove(&never[place].request.id);
            }
            stays
        });
    }

    /// Forgets jobs that have left the queue without a start.
    fn forget_cancelled(&mut self, view: &View<'_>) {
        let waiting = view.waiting.iter().enumerate();
        let visible = waiting
            .filter(|&(index, _)| view.is_visible(index) && !view.has_started(index))
            .map(|(_, waiting)| waiting.request.id);
        if self.waiting.len() <= visible.clone().count() + self.never_waiting.len() {
            return;
        }
        let never = self.never_waiting.iter().map(|&place| self.never[place].request.id);
        let there: HashSet<u64> = visible.chain(never).collect();
        self.waiting.retain(|id, _| there.contains(id));
    }

    /// The jobs that have ended since the last pass.
    fn gone(&self, view: &View<'_>) -> Vec<u64> {
        if !view.changed {
            return Vec::new();
        }
        let ran = self.running.keys().copied();
        ran.filter(|&id| !view.running.contains(id)).collect()
    }

    /// A job leaves its nodes. Without an epilogue they are free at once, and the main scheduler runs as after a submission.
    fn clean_up(&mut self, nodes: NodeSet, now: f64) {
        let until = if let Some(seconds) = self.config.schedulers.epilog {
            self.clock.epilog = self.clock.epilog.min(now + seconds);
            now + seconds
        } else {
            self.wake(now);
            self.next_second(now)
        };
        if until > now {
            self.completing.push((until, nodes));
        }
        self.note_change(now);
    }

    /// When something was last due that is due every `seconds`.
    fn last(&self, seconds: f64, now: f64) -> f64 {
        let begin = self.config.begin;
        ((now - begin) / seconds).floor() * seconds + begin
    }

    /// Slurm's main loop looks once a second, and so after a second in which something happened.
    fn next_second(&self, time: f64) -> f64 {
        (time + self.config.epoch).floor() + 1.0 - self.config.epoch
    }

    /// The main scheduler runs because something happened at `time`.
    fn wake(&mut self, time: f64) {
        let earliest = self.clock.last_main + self.config.schedulers.submission_delay;
        let due = self.next_second(time).max(earliest);
        self.clock.main = self.clock.main.min(due);
        self.note_change(time);
    }

    /// Backfill has something to look at, in its next turn.
    fn note_change(&mut self, now: f64) {
        let between = self.config.schedulers.backfill_interval;
        let seen = self.next_second(now).max(self.clock.last_backfill + between);
        let turn = self.last(between, seen);
        let due = if turn < seen { turn + between } else { turn };
        self.clock.backfill = self.clock.backfill.min(due);
        self.is_stuck = false;
    }

    /// A job is eligible from `since` on, if it is not known yet. The schedulers see it in the next second, or at once if it was
    /// one of them that found it eligible.
    fn arrive(&mut self, request: &Request, since: f64) {
        if self.waiting.contains_key(&request.id) {
            return;
        }
        let seen = if request.begin > 0.0 { since } else { self.next_second(since) };
        let part = self.part(&whose(request));
        let preempted = f64::NEG_INFINITY;
        let standing = Standing { since, seen, priority: 0.0, is_tested: false, part, preempted };
        let priority = self.priority(request, standing, since);
        self.waiting.insert(request.id, Standing { priority, ..standing });
        self.wake(since);
    }

    /// The priority of a waiting job at a time.
    fn priority(&self, request: &Request, standing: Standing, time: f64) -> f64 {
        let whose = whose(request);
        let of_nodes = self.processors_of(request);
        let processors = whose.processors.map(|asked| asked.max(of_nodes));
        let asks = Asks {
            nodes: request.nodes,
            processors: if standing.is_tested { processors } else { whose.processors },
            whose: &whose,
            age: time - standing.since,
        };
        self.factors.priority(asks, self.fair.factor(&whose))
    }

    /// The processors that a job gets on so many nodes: all of them, or its part of each.
    fn processors_on(&self, nodes: usize, request: &Request) -> u64 {
        let of_a_node = match &request.share {
            Share::Whole => self.config.processors_per_node,
            Share::Part(amounts) => amounts.cores(),
        };
        nodes as u64 * of_a_node
    }

    /// The processors that a waiting job gets.
    fn processors_of(&self, request: &Request) -> u64 {
        self.processors_on(request.nodes as usize, request)
    }

    /// Computes usage and priorities as of all turns of the period up to `until`.
    fn compute_priorities(&mut self, view: &View<'_>, until: f64) {
        if until < self.clock.period {
            return;
        }
        while self.clock.period <= until {
            let time = self.clock.period;
            self.fair.decay(time - self.clock.last_period);
            let mut running: Vec<u64> = self.running.keys().copied().collect();
            running.sort_unstable();
            for id in running {
                let Some(mut ran) = self.running.remove(&id) else { continue };
                self.charge(&ran, time);
                ran.counted = ran.counted.max(time);
                self.running.insert(id, ran);
            }
            self.clock.last_period = time;
            self.clock.period = time + self.config.priority.period;
        }
        self.fair.rank();
        self.set_priorities(view);
        self.note_change(until);
    }

    /// Gives every waiting job the priority of the last computation.
    fn set_priorities(&mut self, view: &View<'_>) {
        let time = self.clock.last_period;
        let never = Arc::clone(&self.never);
        let waiting = view.waiting.iter().map(|waiting| &*waiting.request);
        let there = self.never_waiting.clone();
        for request in waiting.chain(there.iter().map(|&place| &never[place].request)) {
            if let Some(&standing) = self.waiting.get(&request.id) {
                let priority = self.priority(request, standing, time);
                self.waiting.insert(request.id, Standing { priority, ..standing });
            }
        }
    }

    /// Counts what a job used since its usage was last counted.
    fn charge(&mut self, ran: &Ran, until: f64) {
        let seconds = (until - ran.counted.max(self.clock.last_period)).max(0.0);
        let factor = self.qos_of(&ran.whose).map_or(1.0, |qos| qos.usage_factor);
        self.fair.charge(&ran.whose, factor * ran.processors as f64, seconds);
    }

    fn qos_of(&self, whose: &Attributes) -> Option<&Qos> {
        self.config.qos.iter().find(|qos| *qos.name == *whose.qos)
    }

    fn note_start(&mut self, request: &Request, nodes: &[u32], start: f64) {
        let whose = whose(request);
        let processors = self.processors_on(nodes.len(), request).max(nodes.len() as u64);
        self.waiting.remove(&request.id);
        let capacity = nodes.iter().max().map_or(0, |last| last + 1);
        let nodes = NodeSet::of(capacity, nodes.iter().copied());
        self.held.add(&whose, &nodes);
        self.running.insert(
            request.id,
            Ran { whose, nodes, processors, counted: start, leaves: f64::INFINITY },
        );
    }

    /// Places a job on some of these nodes and starts it.
    fn start(
        &mut self,
        view: &mut View<'_>,
        turn: &Turn<'_>,
        nodes: NodeSet,
    ) -> Result<(), Refusal> {
        let request = limited(turn.request, nodes);
        let placement = view.policy.place(&request, view.occupancy)?;
        let free = view.occupancy.idle_nodes();
        if self.start_on(view, turn, placement) {
            return Ok(());
        }
        Err(Refusal::NotNow { wanted: request.nodes, free })
    }

    /// Starts a job that the policy has just placed; false if it cannot. One that never starts is left alone.
    fn start_on(&mut self, view: &mut View<'_>, turn: &Turn<'_>, placement: Placement) -> bool {
        let Some(index) = turn.index else { return true };
        let placement = Arc::new(placement);
        if !view.start(index, Arc::clone(&placement)) {
            return false;
        }
        self.note_start(turn.request, placement.nodes(), view.now);
        true
    }

    /// The main scheduler: each job in order starts where it fits. A partition is closed with all its nodes by the first job
    /// that does not, and a reservation likewise.
    fn run_main(&mut self, view: &mut View<'_>, is_full: bool) -> Option<(u64, Refusal)> {
        let never = Arc::clone(&self.never);
        let turns = self.turns(view, &never);
        if turns.is_empty() {
            return None;
        }
        let mut open = self.usable(view);
        let mut leaving = NodeSet::empty(open.capacity());
        let completing = self.completing.iter().map(|(_, nodes)| nodes);
        let gone = self.gone(view);
        let gone = gone.iter().map(|id| &self.running[id].nodes);
        completing.chain(gone).for_each(|nodes| leaving.unite(nodes));
        let mut is_closed = vec![false; self.parts.len()];
        let mut closed_reservations: Vec<Arc<str>> = Vec::new();
        let mut first = None;
        let depth = if is_full { usize::MAX } else { self.config.schedulers.depth };
        for turn in turns.into_iter().take(depth) {
            let request = turn.request;
            let own = &turn.whose.reservation;
            let is_reserved = !own.is_empty();
            if is_closed[turn.standing.part] && !is_reserved || closed_reservations.contains(own) {
                continue;
            }
            let mut nodes = open.clone();
            let span = (view.now, view.now + request.walltime);
            let Some(is_reduced) = self.keep_allowed(&mut nodes, &turn, span) else { continue };
            if !self.held.admits(&turn.whose, request.nodes)
                || is_reduced && nodes.count() < request.nodes
            {
                continue;
            }
            if nodes.count() >= request.nodes && !self.has_licenses(request, &turn.whose, view.now)
            {
                if self.config.schedulers.backfill_licenses {
                    break;
                }
                continue;
            }
            nodes.subtract(&leaving);
            let room = self.config.preemption.by.map(|_| nodes.clone());
            if let Err(refusal) = self.start(view, &turn, nodes) {
                if let Some(nodes) = room {
                    leaving.unite(&self.make_room(view, &turn, &nodes));
                }
                first.get_or_insert((request.id, refusal));
                if is_reserved {
                    closed_reservations.push(Arc::clone(own));
                    continue;
                }
                is_closed[turn.standing.part] = true;
                match &self.parts[turn.standing.part].nodes {
                    Some(part) => open.subtract(part),
                    None => open = NodeSet::empty(open.capacity()),
                }
            }
        }
        first
    }

    /// Lets one of the schedulers have a turn.
    fn ask(&mut self, view: &mut View<'_>, by: By) {
        match by {
            By::Main => drop(self.run_main(view, false)),
            By::Backfill => self.run_backfill(view),
        }
    }

    /// The first time after `now` at which a reservation or a time out of service begins or ends.
    fn next_change(&self, now: f64) -> Option<f64> {
        let kept = self.reservations.iter().chain(&self.out);
        let times = kept.flat_map(|kept| [kept.from, kept.until]);
        times.filter(|&time| time > now && time.is_finite()).min_by(f64::total_cmp)
    }

    /// The main scheduler as Slurm's main loop calls it. It knows what happened before this second, and jobs that it finds
    /// eligible now.
    fn run_if_due(&mut self, view: &mut View<'_>) -> Option<(u64, Refusal)> {
        let now = view.now;
        let is_full = now >= self.clock.last_full + self.config.schedulers.interval;
        if !is_full && now < self.clock.main {
            return None;
        }
        for waiting in view.waiting {
            if waiting.begin > 0.0 && waiting.begin <= now {
                self.arrive(&waiting.request, now);
            }
        }
        // With nothing to do it has run in time, though nobody asked.
        let is_idle = self.waiting.is_empty();
        self.clock.last_main = if is_idle { self.clock.main.min(now) } else { now };
        self.clock.main = f64::INFINITY;
        if is_full {
            self.clock.last_full = self.last(self.config.schedulers.interval, now);
        }
        if is_idle {
            return None;
        }
        let refusal = self.run_main(view, is_full);
        self.note_change(now);
        refusal
    }
}

impl Queue for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let now = view.now;
        self.begin(now);
        self.completing.retain(|(until, _)| *until > now);
        self.fail_nodes(view);
        self.end_graces(view);
        self.compute_priorities(view, now - A_MOMENT);
        let mut refusal = self.run_if_due(view);
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

impl Never {
    fn of(one: &NeverStarted) -> Self {
        let attributes = Attributes {
            partition: Arc::from(&*one.partition),
            user: Arc::from(&*one.user),
            account: Arc::from(&*one.account),
            qos: Arc::from(&*one.qos),
            reservation: Arc::default(),
            nice: one.nice,
            processors: one.processors,
            no_requeue: false,
            licenses: licenses::named(&one.licenses),
        };
        let request = Request {
            attributes: Some(Arc::new(attributes)),
            ..Request::whole_nodes(u64::MAX - one.id, one.nodes, one.walltime)
        };
        Never { request, submit: one.submit, until: one.until }
    }
}

/// Whose a request is; of nobody if that is not known.
fn whose(request: &Request) -> Arc<Attributes> {
    static NOBODY: LazyLock<Arc<Attributes>> = LazyLock::new(Arc::default);
    request.attributes.as_ref().unwrap_or(&NOBODY).clone()
}

/// The request on these nodes only.
fn limited(request: &Request, mut nodes: NodeSet) -> Request {
    if let Some(eligible) = &request.eligible {
        nodes.intersect(eligible);
    }
    Request { eligible: Some(Arc::new(nodes)), ..request.clone() }
}
