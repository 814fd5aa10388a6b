//! Follows recorded starts and asks, before each of them, what the queue would have started.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use topolane_fabric::{NodeIndex, NodeSet};
use topolane_placement::Placement;

use super::Slurm;
use super::jobs::whose;
use crate::queue::{Pass, Queue};
use crate::view::View;

/// By how many seconds the computation of priorities may be later than the records say. They have the start of slurmctld
/// as a whole second, and the thread that computes priorities starts up to a second after that.
const PERIOD_LATE: f64 = 1.0;

/// One of Slurm's two schedulers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The main scheduler.
    Main,
    /// Backfill.
    Backfill,
}

impl By {
    /// Runs this scheduler once.
    fn run(self, slurm: &mut Slurm, view: &mut View<'_>) {
        match self {
            By::Main => drop(slurm.run_main(view, false)),
            By::Backfill => slurm.run_backfill(view),
        }
    }
}

/// A start in the records.
#[derive(Debug, Clone)]
pub struct RecordedStart {
    /// The time of the start in seconds.
    pub at: f64,
    /// The nodes of the job.
    pub nodes: Vec<NodeIndex>,
    /// The scheduler that started it; `None` if it was another part of Slurm or is unknown.
    pub by: Option<By>,
}

/// Why the queue does not start a job that started in the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// The job is not eligible yet, or unknown.
    Unknown,
    /// A limit holds the job back, or its licences are in use.
    Limit,
    /// There are no nodes for the job, even if it is alone in the queue.
    Nodes,
    /// The job would start if it were alone in the queue.
    Others,
}

/// What the queue says about a recorded start, in the recorded state just before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetraceAnswer {
    /// The queue starts the job too; true if on the same nodes.
    Same(bool),
    /// The queue does not start the job.
    Not(Because),
}

/// A question to one scheduler, and its answers.
#[derive(Debug, Clone)]
pub struct RetraceQuestion {
    /// The time of the question in seconds.
    pub time: f64,
    /// The scheduler that was asked.
    pub by: By,
    /// The ids of the recorded starts, with the answer to each.
    pub recorded: Vec<(u64, RetraceAnswer)>,
    /// Ids of other jobs that the queue would start.
    pub more: Vec<u64>,
}

/// The queue, forced to follow recorded starts. It preempts no job: the records say which jobs ended.
pub struct Retrace {
    slurm: Slurm,
    starts: HashMap<u64, RecordedStart>,
    asked: Arc<Mutex<Vec<RetraceQuestion>>>,
    /// The recorded starts that the queue has been asked about.
    seen: HashSet<u64>,
    /// When the next recorded start of a waiting job is due.
    next: f64,
    /// The priorities before they were last computed, by request id.
    earlier: FxHashMap<u64, f64>,
}

impl Retrace {
    /// Returns a queue that follows `starts`, which is indexed by request id. Questions and answers are appended to
    /// `asked`.
    pub fn new(
        mut slurm: Slurm,
        starts: HashMap<u64, RecordedStart>,
        asked: Arc<Mutex<Vec<RetraceQuestion>>>,
    ) -> Self {
        slurm.failing.clear();
        Retrace {
            slurm,
            starts,
            asked,
            seen: HashSet::new(),
            next: f64::INFINITY,
            earlier: FxHashMap::default(),
        }
    }

    /// The queue positions of recorded starts that are due.
    fn due(&self, view: &View<'_>, by: Option<By>) -> Vec<usize> {
        let is_due = |id| {
            let start = self.starts.get(&id);
            start.is_some_and(|start| start.by == by && start.at <= view.now)
        };
        let waiting = view.waiting.iter().enumerate();
        waiting.filter(|(_, waiting)| is_due(waiting.request.id)).map(|(index, _)| index).collect()
    }

    /// Asks one scheduler about the recorded starts that are due now, each once. `others` are starts of the other
    /// scheduler in the same second.
    fn ask_once(&mut self, view: &View<'_>, by: By, due: &[usize], others: &[usize]) {
        let ids = due.iter().map(|&index| view.waiting[index].request.id);
        let ids: Vec<u64> = ids.filter(|&id| self.seen.insert(id)).collect();
        if !ids.is_empty() {
            self.ask(view, &ids, by, others);
        }
    }

    /// Asks one scheduler what it would start, at the time when the records start these jobs.
    fn ask(&self, view: &View<'_>, ids: &[u64], by: By, others: &[usize]) {
        // The records do not give an order within a second, so ask in each order and keep the best answer. Slurm's main
        // scheduler usually runs before backfill.
        let orders: [&[usize]; 2] = match by {
            By::Main => [&[], others],
            By::Backfill => [others, &[]],
        };
        let orders = if others.is_empty() { &orders[..1] } else { &orders };
        let is_late = view.now <= self.slurm.clock.last_period + PERIOD_LATE;
        let periods = if is_late { &[false, true][..] } else { &[false] };
        let knowing = [(false, false), (true, true), (true, false), (false, true)];
        let mut tries: Vec<(&[usize], bool, (bool, bool))> = Vec::new();
        for &first in orders {
            for &is_before in periods {
                tries.extend(knowing.map(|known| (first, is_before, known)));
            }
        }
        let answers = tries.into_iter().map(|(first, is_before, (arrivals, ends))| {
            let mut slurm = self.knowing_this_second(arrivals, ends);
            if is_before {
                self.undo_period(&mut slurm);
            }
            self.starts_of(by, slurm, view, first)
        });
        let wrong = |starts: &HashMap<u64, _>| {
            let missing = ids.iter().filter(|id| !starts.contains_key(id)).count();
            missing + starts.keys().filter(|id| !ids.contains(id)).count()
        };
        let Some(starts) = answers.min_by_key(wrong) else { return };
        let answer = |&id: &u64| (id, self.answer(view, &starts, id, (by, orders[0])));
        let recorded = ids.iter().map(answer).collect();
        let mut more: Vec<u64> = starts.into_keys().filter(|id| !ids.contains(id)).collect();
        more.sort_unstable();
        let asked = RetraceQuestion { time: view.now, by, recorded, more };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    }

    fn answer(
        &self,
        view: &View<'_>,
        starts: &HashMap<u64, Arc<Placement>>,
        id: u64,
        (by, first): (By, &[usize]),
    ) -> RetraceAnswer {
        if let Some(placement) = starts.get(&id) {
            let set = |nodes: &[NodeIndex]| {
                NodeSet::of(view.occupancy.idle().capacity(), nodes.iter().copied())
            };
            return RetraceAnswer::Same(set(placement.nodes()) == set(&self.starts[&id].nodes));
        }
        let mut slurm = self.knowing_this_second(true, true);
        if slurm.waiting.get(&id).is_none_or(|standing| standing.since > view.now) {
            return RetraceAnswer::Not(Because::Unknown);
        }
        let waiting = view.waiting.iter().find(|waiting| waiting.request.id == id);
        let is_admitted = waiting.is_some_and(|waiting| {
            let whose = whose(&waiting.request);
            slurm.held.admits(&whose, waiting.request.nodes)
                && slurm.has_licenses(&waiting.request, &whose, view.now)
        });
        if !is_admitted {
            return RetraceAnswer::Not(Because::Limit);
        }
        slurm.waiting.retain(|&other, _| other == id);
        let alone = self.starts_of(by, slurm, view, first);
        RetraceAnswer::Not(if alone.contains_key(&id) { Because::Others } else { Because::Nodes })
    }

    /// What one scheduler would start after these recorded starts.
    fn starts_of(
        &self,
        by: By,
        mut slurm: Slurm,
        view: &View<'_>,
        first: &[usize],
    ) -> HashMap<u64, Arc<Placement>> {
        let mut starts = would_start(view, |view| {
            for &index in first {
                self.start(&mut slurm, view, index);
            }
            by.run(&mut slurm, view);
        });
        for &index in first {
            starts.remove(&view.waiting[index].request.id);
        }
        starts
    }

    /// A copy of the queue that also knows which jobs arrived or ended in this second.
    fn knowing_this_second(&self, arrivals: bool, ends: bool) -> Slurm {
        let mut slurm = self.slurm.clone();
        if ends {
            slurm.completing.clear();
        }
        if arrivals {
            slurm.waiting.values_mut().for_each(|standing| standing.seen = standing.since);
        }
        slurm
    }

    /// Gives waiting jobs the priorities that they had before these were last computed.
    fn undo_period(&self, slurm: &mut Slurm) {
        for (id, standing) in &mut slurm.waiting {
            standing.priority = self.earlier.get(id).copied().unwrap_or(standing.priority);
        }
    }

    /// Runs the queue's own turn and undoes its starts.
    fn turn(&mut self, view: &View<'_>) {
        let before = self.slurm.waiting.clone();
        let last_period = self.slurm.clock.last_period;
        // Which jobs may preempt others decides their order, so the queue that is asked keeps this rule.
        let preempts = self.slurm.config.preemption.by.take();
        let slurm = &mut self.slurm;
        let starts = would_start(view, |view| {
            slurm.pass(view);
        });
        self.slurm.config.preemption.by = preempts;
        for id in starts.keys() {
            if let Some(ran) = self.slurm.running.remove(id) {
                self.slurm.held.remove(&ran.whose, &ran.nodes);
            }
            if let Some(&standing) = before.get(id) {
                self.slurm.waiting.insert(*id, standing);
            } else if let Some(waiting) = view.waiting.iter().find(|one| one.request.id == *id) {
                self.slurm.arrive(&waiting.request, view.now);
            }
        }
        // Priorities are computed before backfill runs. It has not run if it would have started jobs that did not start.
        let mut tested = Vec::new();
        for (&id, standing) in &mut self.slurm.waiting {
            let was_tested = before.get(&id).is_some_and(|before| before.is_tested);
            if standing.is_tested && !was_tested {
                standing.is_tested = false;
                tested.push(id);
            }
        }
        if self.slurm.clock.last_period > last_period {
            self.earlier = before.iter().map(|(&id, standing)| (id, standing.priority)).collect();
            self.slurm.set_priorities(view);
        }
        for id in tested.into_iter().filter(|_| starts.is_empty()) {
            self.slurm.waiting.entry(id).and_modify(|standing| standing.is_tested = true);
        }
    }

    /// Starts a job as it started in the records.
    fn start(&self, slurm: &mut Slurm, view: &mut View<'_>, index: usize) {
        let request = view.waiting[index].request.clone();
        let Some(start) = self.starts.get(&request.id) else { return };
        let fabric = view.occupancy.fabric();
        let placement = Placement::new(fabric, start.nodes.clone(), request.share.clone());
        if view.start(index, Arc::new(placement)) {
            slurm.note_start(&request, &start.nodes, view.now);
        }
    }
}

impl Queue for Retrace {
    fn name(&self) -> &'static str {
        "retrace"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        self.turn(view);
        let [main, backfill, unknown] =
            [Some(By::Main), Some(By::Backfill), None].map(|by| self.due(view, by));
        self.ask_once(view, By::Main, &main, &backfill);
        self.ask_once(view, By::Backfill, &backfill, &main);
        let mut slurm = std::mem::take(&mut self.slurm);
        for index in main.into_iter().chain(backfill).chain(unknown) {
            self.start(&mut slurm, view, index);
        }
        self.slurm = slurm;
        let waiting = view.waiting.iter().enumerate();
        let left = waiting.filter(|&(index, _)| !view.has_started(index));
        let next = left.filter_map(|(_, waiting)| self.starts.get(&waiting.request.id));
        let next = next.map(|start| start.at).min_by(f64::total_cmp);
        // If nodes are not free yet, try again a second later.
        self.next = next.map_or(f64::INFINITY, |next| next.max(view.now + 1.0));
        Pass::default()
    }

    fn next_pass(&self, now: f64) -> Option<f64> {
        let next = self.slurm.next_pass(now).unwrap_or(f64::INFINITY).min(self.next);
        next.is_finite().then_some(next)
    }
}

/// The jobs that a scheduler would start in its turn. Nothing is changed.
fn would_start(view: &View<'_>, turn: impl FnOnce(&mut View<'_>)) -> HashMap<u64, Arc<Placement>> {
    let (mut running, mut occupancy) = (view.running.clone(), view.occupancy.clone());
    let mut copy = View {
        running: &mut running,
        occupancy: &mut occupancy,
        defrag: None,
        started: view.started.clone(),
        moved: Vec::new(),
        ended_early: Vec::new(),
        ..*view
    };
    turn(&mut copy);
    let new = copy.started.split_off(view.started.len());
    new.into_iter().map(|(index, placement)| (view.waiting[index].request.id, placement)).collect()
}
