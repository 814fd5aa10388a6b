//! The driver of the simulation: asks the policy and applies its answers.

use std::cmp::Reverse;

use super::machine::{SimulatedMachine, TURN};
use super::outcome::{GangJobOutcome, GangOutcome, SliceRun};
use super::program::{ProgramKind, ThreadProgram};
use super::results::{job_outcome, used};
use super::setup::{Setup, SetupError, Task};
use super::slices::Leave;
use super::thread::{JobClass, ThreadState};
use super::time::{NEVER, Nanos, nanos, seconds};
use crate::job::{JobId, ObservedJob};
use crate::limits::SliceLimits;
use crate::observer::Observer;
use crate::policy::GangPolicy;
use crate::round::Round;

/// The mean length of a burst of the host's own work, in seconds.
const BURST: f64 = 1e-3;

/// Simulates jobs on cores under a policy, which must not have been asked before.
///
/// # Errors
///
/// A value that makes no sense.
pub fn simulate(setup: &Setup, policy: &mut dyn GangPolicy) -> Result<GangOutcome, SetupError> {
    setup.check()?;
    let mut driver = HypervisorDriver::new(setup, policy);
    driver.run();
    Ok(driver.outcome())
}

struct HypervisorDriver<'a> {
    setup: &'a Setup,
    policy: &'a mut dyn GangPolicy,
    limits: SliceLimits,
    machine: SimulatedMachine,
    observer: Observer,
    /// The jobs in order of arrival, which is the order of the policy's numbers.
    order: Vec<usize>,
    arrived: usize,
    /// Jobs that have arrived and not ended, as indices into `order`; add 1 for the index in `SimulatedMachine::runs`,
    /// because the host is first there.
    present: Vec<usize>,
    round: Round,
    slice: usize,
    /// For each job, when it last began or ended a slice as a first job.
    ran_at: Vec<Option<Nanos>>,
    /// The end of the slice.
    deadline: Nanos,
    accounting: Nanos,
    horizon: Nanos,
    switches: u64,
    slices: Vec<SliceRun>,
}

impl<'a> HypervisorDriver<'a> {
    fn new(setup: &'a Setup, policy: &'a mut dyn GangPolicy) -> Self {
        let mut order: Vec<usize> = (0..setup.jobs.len()).collect();
        order.sort_by(|&one, &other| setup.jobs[one].arrival.total_cmp(&setup.jobs[other].arrival));
        let mut driver = HypervisorDriver {
            setup,
            policy,
            limits: SliceLimits { switch: setup.costs.slice_switch, ..setup.limits },
            machine: SimulatedMachine::new(setup),
            observer: Observer::new(),
            order,
            arrived: 0,
            present: Vec::new(),
            round: Round::default(),
            slice: 0,
            ran_at: vec![None; setup.jobs.len()],
            deadline: NEVER,
            accounting: TURN,
            horizon: nanos(setup.seconds),
            switches: 0,
            slices: Vec::new(),
        };
        driver.add_host();
        driver
    }

    fn run(&mut self) {
        loop {
            let arrival = self.next_arrival();
            let over = arrival == NEVER && self.present.is_empty();
            let next = arrival.min(self.deadline).min(self.accounting).min(self.horizon);
            if over {
                return;
            }
            self.run_machine(next);
            if self.machine.ended || self.machine.now == arrival {
                self.admit();
                self.ask();
                self.start_slice(self.longest_waiting());
            } else if self.machine.now == self.deadline {
                self.next_slice();
            } else if self.machine.now == self.accounting {
                self.machine.account();
                self.accounting += TURN;
            } else {
                return;
            }
        }
    }

    /// Runs until `until`, or until a job ends.
    fn run_machine(&mut self, until: Nanos) {
        let machine = &mut self.machine;
        loop {
            let (alarm, core) = machine.alarms.first();
            let timer = machine.timers.peek().map_or(NEVER, |Reverse((at, _))| *at);
            if alarm.min(timer) > until {
                machine.now = until;
                return;
            }
            if alarm <= timer {
                machine.now = alarm;
                machine.alarm(core);
            } else if let Some(Reverse((at, thread))) = machine.timers.pop() {
                machine.now = at;
                machine.wake(thread);
            }
            if machine.ended {
                return;
            }
        }
    }

    fn next_arrival(&self) -> Nanos {
        self.order.get(self.arrived).map_or(NEVER, |&job| nanos(self.setup.jobs[job].arrival))
    }

    /// Updates the list of present jobs.
    fn admit(&mut self) {
        self.machine.ended = false;
        let (runs, observer) = (&self.machine.runs, &mut self.observer);
        self.present.retain(|&id| {
            let stays = runs[id + 1].finished.is_none();
            if !stays {
                observer.forget(id as JobId);
            }
            stays
        });
        while self.next_arrival() <= self.machine.now {
            let task = &self.setup.jobs[self.order[self.arrived]];
            let Task { threads, weight, workload, length, seed, .. } = *task;
            let program = ThreadProgram::new(ProgramKind::Job(workload, length), threads, seed);
            self.present.push(self.arrived);
            self.arrived += 1;
            self.machine.add(threads, weight, program, &task.delays);
        }
    }

    /// Adds the host's own work. It is not subject to the policy and may run at any time.
    fn add_host(&mut self) {
        let share = self.setup.background;
        let threads = if share > 0.0 { self.setup.cores } else { 0 };
        let kind = ProgramKind::Host { burst: BURST, rest: BURST * (1.0 - share) / share };
        self.machine.add(threads, 1.0, ThreadProgram::new(kind, threads, self.setup.seed), &[]);
    }

    fn next_slice(&mut self) {
        if self.slice + 1 < self.round.slices.len() {
            self.start_slice(self.slice + 1);
        } else {
            self.ask();
            self.start_slice(0);
        }
    }

    fn longest_waiting(&self) -> usize {
        let now = self.machine.now;
        let waited = |since: Nanos| seconds(now.saturating_sub(since));
        self.round.longest_waiting(|id| self.ran_at[id as usize].map_or(f64::INFINITY, waited))
    }

    /// Reports what the jobs did to the observer, and gets a new round from the policy.
    fn ask(&mut self) {
        for &id in &self.present {
            let used = used(&mut self.machine, id + 1);
            let threads = self.setup.jobs[self.order[id]].threads;
            self.observer.learn(id as JobId, threads, used);
        }
        let job = |&id: &usize| {
            let task = &self.setup.jobs[self.order[id]];
            let id = id as JobId;
            ObservedJob {
                id,
                threads: task.threads,
                weight: task.weight,
                fills: true,
                seen: self.observer.seen(id),
            }
        };
        let jobs: Vec<ObservedJob> = self.present.iter().map(job).collect();
        self.stamp();
        self.round = self.policy.round(&jobs, self.setup.cores, &self.limits);
    }

    /// Records that the first jobs of the current slice were running until now, or are running from now on.
    fn stamp(&mut self) {
        let now = self.machine.now;
        for &id in self.round.slices.get(self.slice).iter().flat_map(|slice| &slice.first) {
            self.ran_at[id as usize] = Some(now);
        }
    }

    fn start_slice(&mut self, slice: usize) {
        self.stamp();
        self.slice = slice;
        self.stamp();
        let leaves = (0..self.machine.runs.len()).map(|run| self.leave(run)).collect();
        self.switches += u64::from(self.machine.let_run(leaves));
        let length = self.round.slices.get(self.slice).map_or(NEVER, |slice| nanos(slice.seconds));
        self.deadline = (self.machine.now + length.max(1)).min(NEVER);
        if let (true, Some(slice)) = (self.setup.timeline, self.round.slices.get(self.slice)) {
            let given = |ids: &[JobId]| ids.iter().map(|&id| self.order[id as usize]).collect();
            self.slices.push(SliceRun {
                start: seconds(self.machine.now),
                first: given(&slice.first),
                fillers: given(&slice.fillers),
                delays: slice.first.iter().map(|&id| self.round.delay(id)).collect(),
            });
        }
    }

    /// How a job may run in this slice.
    fn leave(&self, run: usize) -> Leave {
        let cores = || (0..self.setup.cores).collect();
        let Some(id) = run.checked_sub(1) else {
            return Leave { class: Some(JobClass::First), cores: cores(), pinned: true };
        };
        let id = id as JobId;
        let slice = self.round.slices.get(self.slice);
        let class = slice.and_then(|slice| match () {
            () if slice.first.contains(&id) => Some(JobClass::First),
            () if slice.fillers.contains(&id) => Some(JobClass::Filler),
            () => None,
        });
        let cores = self.round.cores.get(&id).cloned().unwrap_or_default();
        let class = class.filter(|_| !cores.is_empty());
        let enough = cores.len() >= self.machine.runs[run].threads.len();
        Leave { class, pinned: enough && self.round.gangs.contains(&id), cores }
    }

    fn outcome(mut self) -> GangOutcome {
        let machine = &mut self.machine;
        for thread in 0..machine.threads.len() {
            let state = machine.threads[thread].state;
            if state != ThreadState::Ended {
                machine.enter(thread, state);
            }
        }
        let mut jobs = vec![GangJobOutcome::default(); self.setup.jobs.len()];
        for (id, &job) in self.order.iter().enumerate() {
            if id < self.arrived {
                jobs[job] = job_outcome(machine, id + 1);
            }
        }
        let mut spells = machine.spells.take().unwrap_or_default();
        spells.retain(|spell| spell.job > 0);
        for spell in &mut spells {
            spell.job = self.order[spell.job - 1];
        }
        let seconds = seconds(machine.now);
        GangOutcome { jobs, seconds, switches: self.switches, spells, slices: self.slices }
    }
}
