//! The cores of the simulated machine and the threads that run on them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::alarms::Alarms;
use super::core_set::CoreSet;
use super::outcome::Spell;
use super::program::ThreadProgram;
use super::setup::Setup;
use super::thread::{
    Core, CpuAccount, JobClass, SimulatedJob, Thread, ThreadPriority, ThreadState,
};
use super::time::{NEVER, Nanos, nanos, seconds};
use super::workload::drawn;

/// The longest time that a thread runs on a core in one turn (`CSCHED_DEFAULT_TSLICE_MS`).
pub const TURN: Nanos = 30_000_000;
/// The time between two ticks of a core (`CSCHED_TICKS_PER_TSLICE` is 3).
pub const TICK: Nanos = 10_000_000;

/// Everything that is simulated, except the policy.
pub struct SimulatedMachine {
    pub now: Nanos,
    pub cores: Vec<Core>,
    pub threads: Vec<Thread>,
    pub runs: Vec<SimulatedJob>,
    pub alarms: Alarms,
    /// The times at which blocked threads wake.
    pub timers: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The idle cores.
    pub idle: CoreSet,
    /// Whether the current slice has fillers.
    pub fillers: bool,
    /// The number of threads in queues.
    pub queued: usize,
    /// Credits that all threads together owed at the last accounting, in nanoseconds of a core.
    pub owed: f64,
    /// Whether a slice is starting now.
    pub switching: bool,
    /// Whether a job has ended since this was last reset.
    pub ended: bool,
    pub spells: Option<Vec<Spell>>,
    context_switch: Nanos,
    slice_switch: Nanos,
    pub wake_up: Nanos,
}

impl SimulatedMachine {
    pub fn new(setup: &Setup) -> Self {
        let offset = |core: usize| (drawn(setup.seed, 0, core as u64) * TURN as f64) as Nanos;
        SimulatedMachine {
            now: 0,
            cores: (0..setup.cores).map(|core| Core::new(offset(core))).collect(),
            threads: Vec::new(),
            runs: Vec::new(),
            alarms: Alarms::new(setup.cores),
            timers: BinaryHeap::new(),
            idle: (0..setup.cores).collect(),
            fillers: false,
            queued: 0,
            owed: 0.0,
            switching: false,
            ended: false,
            spells: setup.timeline.then(Vec::new),
            context_switch: nanos(setup.costs.context_switch),
            slice_switch: nanos(setup.costs.slice_switch),
            wake_up: nanos(setup.costs.wake_up),
        }
    }

    /// Adds a job and its threads, which are stopped, or blocked until they begin.
    pub fn add(&mut self, threads: usize, weight: f64, program: ThreadProgram, delays: &[f64]) {
        let job = self.runs.len();
        let first = self.threads.len();
        self.threads.extend((0..threads).map(|index| Thread::new(job, index, self.now)));
        for (index, &delay) in delays.iter().enumerate().filter(|&(_, &delay)| delay > 0.0) {
            self.threads[first + index].state = ThreadState::Blocked;
            self.timers.push(Reverse((self.now + nanos(delay), first + index)));
        }
        self.runs.push(SimulatedJob {
            threads: first..first + threads,
            weight,
            arrived: self.now,
            class: None,
            cores: Vec::new(),
            allowed: CoreSet::default(),
            pinned: false,
            program,
            living: threads,
            finished: None,
            given: CpuAccount { since: self.now, ..CpuAccount::default() },
        });
    }

    /// Adds the time of a thread in its current state.
    pub fn count(&mut self, thread: usize) {
        let it = &mut self.threads[thread];
        let time = self.now - it.counted;
        it.counted = self.now;
        if it.state == ThreadState::Ended {
            return;
        }
        it.spent[it.state as usize] += time;
        let run = &mut self.runs[it.job];
        if run.class == Some(JobClass::First) {
            match it.state {
                ThreadState::Running => run.given.ran += time,
                ThreadState::Ready => run.given.ready += time,
                _ => {}
            }
        }
    }

    /// Moves a thread to another state.
    pub fn enter(&mut self, thread: usize, state: ThreadState) {
        self.count(thread);
        let it = &mut self.threads[thread];
        let was = std::mem::replace(&mut it.state, state);
        let start = std::mem::replace(&mut it.entered, self.now);
        let Some(spells) = &mut self.spells else { return };
        if start < self.now && matches!(was, ThreadState::Running | ThreadState::Ready) {
            let (start, end) = (seconds(start), seconds(self.now));
            let ran = was == ThreadState::Running;
            spells.push(Spell { start, end, core: it.core, job: it.job, thread: it.index, ran });
        }
    }

    /// The rank of a thread: first threads before fillers, then by priority. Never 0.
    pub fn rank(&self, thread: usize) -> u8 {
        let it = &self.threads[thread];
        let class = if self.runs[it.job].class == Some(JobClass::First) { FIRST } else { FILLER };
        class + it.priority as u8
    }

    /// The rank of the thread that runs on a core; 0 if it is idle.
    pub fn current_rank(&self, core: usize) -> u8 {
        self.cores[core].current.map_or(0, |thread| self.rank(thread))
    }

    /// Sets the alarm of a core: its thread continues its program, its turn ends, or a tick that matters.
    pub fn set_alarm(&mut self, core: usize) {
        let it = &self.cores[core];
        let Some(current) = it.current else {
            self.alarms.set(core, NEVER);
            self.idle.insert(core);
            return;
        };
        let thread = &self.threads[current];
        let mut at = it.turn;
        if !thread.spinning {
            at = at.min(thread.from + thread.work);
        }
        if !it.queue.is_empty() || thread.priority == ThreadPriority::Boost || !thread.active {
            at = at.min(it.strike(TICK, self.now));
        }
        self.alarms.set(core, at);
    }

    /// Handles the alarm of a core.
    pub fn alarm(&mut self, core: usize) {
        let Some(current) = self.cores[core].current else {
            self.alarms.set(core, NEVER);
            return;
        };
        let thread = &self.threads[current];
        if !thread.spinning && thread.from + thread.work <= self.now {
            self.threads[current].work = 0;
            self.step(current);
        } else if self.cores[core].turn <= self.now {
            self.schedule(core);
        } else {
            self.tick(core);
        }
    }

    /// Removes the running thread from a core. The thread can still run.
    pub fn take_off(&mut self, core: usize) -> Option<usize> {
        let current = self.cores[core].current.take()?;
        self.pay(current);
        let it = &mut self.threads[current];
        if !it.spinning {
            it.work -= it.work.min(self.now.saturating_sub(it.from));
        }
        Some(current)
    }

    /// Chooses the thread to run on a core now.
    pub fn schedule(&mut self, core: usize) {
        if let Some(current) = self.take_off(core) {
            self.enter(current, ThreadState::Ready);
            self.insert(core, current);
        }
        match self.pick(core) {
            Some(thread) => self.put_on(core, thread),
            None => self.set_alarm(core),
        }
    }

    /// Runs a thread on a free core.
    fn put_on(&mut self, core: usize, thread: usize) {
        self.enter(thread, ThreadState::Running);
        let (now, switching) = (self.now, self.switching);
        let cost = if switching { self.slice_switch } else { self.context_switch };
        let (on, it) = (&mut self.cores[core], &mut self.threads[thread]);
        it.from = if on.last == Some(thread) { it.from.max(now) } else { now + cost };
        it.paid = now;
        it.core = core;
        // A core that was idle is somewhere within a turn of its own clock.
        on.turn = if on.turn == NEVER { on.strike(TURN, now) } else { now + TURN };
        self.idle.remove(core);
        on.current = Some(thread);
        on.last = Some(thread);
        self.set_alarm(core);
    }

    /// Removes a thread from its core because it waits for something, or has ended.
    pub fn leave(&mut self, thread: usize, state: ThreadState) {
        let core = self.threads[thread].core;
        self.take_off(core);
        self.enter(thread, state);
        self.schedule(core);
    }
}

/// The ranks of a filler without credits and of a first thread.
pub const FILLER: u8 = 1;
pub const FIRST: u8 = 5;
