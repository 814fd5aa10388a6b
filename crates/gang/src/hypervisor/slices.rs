//! Switches from one slice to the next.

use super::machine::SimulatedMachine;
use super::thread::{JobClass, SimulatedJob, ThreadState};
use super::time::NEVER;

/// How a job may run in a slice.
#[derive(Clone, PartialEq)]
pub struct Leave {
    pub class: Option<JobClass>,
    /// The cores that it may use, ascending.
    pub cores: Vec<usize>,
    pub pinned: bool,
}

impl SimulatedMachine {
    /// Applies `leaves`, one per job, to all cores at this instant. Returns whether anything changed.
    pub fn let_run(&mut self, leaves: Vec<Leave>) -> bool {
        let changed: Vec<bool> =
            self.runs.iter().zip(&leaves).map(|(run, leave)| differs(run, leave)).collect();
        if !changed.contains(&true) {
            return false;
        }
        for run in 0..self.runs.len() {
            for thread in self.runs[run].threads.clone() {
                self.count(thread);
            }
            self.runs[run].count(self.now);
        }
        for (run, leave) in self.runs.iter_mut().zip(leaves) {
            run.class = leave.class;
            run.pinned = leave.pinned;
            if leave.class.is_some() {
                run.allowed = leave.cores.iter().copied().collect();
                run.cores = leave.cores;
            }
        }
        self.fillers = self.runs.iter().any(|run| run.class == Some(JobClass::Filler));
        for core in 0..self.cores.len() {
            self.clear(core);
        }
        for run in (0..self.runs.len()).filter(|&run| changed[run]) {
            self.admit(run);
        }
        self.switching = true;
        for core in 0..self.cores.len() {
            let best = self.cores[core].queue.first().map_or(0, |&thread| self.rank(thread));
            if best > self.current_rank(core) || self.cores[core].current.is_none() {
                self.schedule(core);
            }
        }
        for core in 0..self.cores.len() {
            if let Some(&first) = self.cores[core].queue.first() {
                self.tickle(core, first);
            }
        }
        self.switching = false;
        true
    }

    /// Removes threads that may no longer be there from a core and its queue.
    fn clear(&mut self, core: usize) {
        let stays = |machine: &Self, thread: usize| {
            let it = &machine.threads[thread];
            let run = &machine.runs[it.job];
            run.class.is_some() && run.allows(it.index, core)
        };
        if let Some(current) = self.cores[core].current
            && !stays(self, current)
        {
            self.take_off(core);
            self.enter(current, ThreadState::Stopped);
            self.cores[core].turn = NEVER;
        }
        let (queue, gone): (Vec<usize>, Vec<usize>) = std::mem::take(&mut self.cores[core].queue)
            .into_iter()
            .partition(|&thread| stays(self, thread));
        self.queued -= gone.len();
        self.cores[core].queue = queue;
        for thread in gone {
            self.enter(thread, ThreadState::Stopped);
        }
        self.sort(core);
        self.set_alarm(core);
    }

    /// Puts the stopped threads of a job into queues, if the job may run.
    fn admit(&mut self, run: usize) {
        if self.runs[run].class.is_none() {
            return;
        }
        for thread in self.runs[run].threads.clone() {
            if self.threads[thread].state == ThreadState::Stopped {
                let core = self.home(thread);
                self.enter(thread, ThreadState::Ready);
                self.insert(core, thread);
            }
        }
    }
}

/// Whether a job may now run in another way than before.
fn differs(run: &SimulatedJob, leave: &Leave) -> bool {
    if leave.class.is_none() {
        return run.class.is_some();
    }
    run.class != leave.class || run.pinned != leave.pinned || run.cores != leave.cores
}
