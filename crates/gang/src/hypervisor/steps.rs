//! The steps of threads that affect other threads or the scheduler.

use std::cmp::Reverse;

use super::machine::SimulatedMachine;
use super::program::Action;
use super::thread::ThreadState;
use super::time::{Nanos, seconds};

impl SimulatedMachine {
    /// Continues the program of a thread that is on a core.
    pub fn step(&mut self, thread: usize) {
        let (job, index) = (self.threads[thread].job, self.threads[thread].index);
        loop {
            match self.runs[job].program.next(index, self.now) {
                Action::Compute(work) => {
                    let it = &mut self.threads[thread];
                    it.work = work;
                    it.from = self.now;
                    let core = it.core;
                    self.set_alarm(core);
                    return;
                }
                Action::Meet { spin } => {
                    if !self.meet(thread, spin) {
                        return;
                    }
                }
                Action::Nap(time) => {
                    self.wake_in(thread, time);
                    self.leave(thread, ThreadState::Blocked);
                    return;
                }
                Action::Log => self.threads[thread].ends.push(seconds(self.now)),
                Action::Exit => {
                    self.exit(thread);
                    return;
                }
            }
        }
    }

    fn wake_in(&mut self, thread: usize, time: Nanos) {
        self.timers.push(Reverse((self.now + time + self.wake_up, thread)));
    }

    /// Handles a thread that reached the barrier of its job. Returns whether it continues at once.
    fn meet(&mut self, thread: usize, spin: bool) -> bool {
        let (job, index) = (self.threads[thread].job, self.threads[thread].index);
        let run = &mut self.runs[job];
        let clock = run.clock(self.now);
        if run.program.meet(index, self.now, clock) {
            self.release(job);
            return true;
        }
        self.threads[thread].waiting = true;
        if spin {
            self.threads[thread].spinning = true;
            let core = self.threads[thread].core;
            self.set_alarm(core);
        } else {
            self.leave(thread, ThreadState::Blocked);
        }
        false
    }

    /// Releases all waiting threads of a job: those on a core at once, others when they get a core.
    fn release(&mut self, job: usize) {
        for thread in self.runs[job].threads.clone() {
            let it = &mut self.threads[thread];
            if !std::mem::take(&mut it.waiting) {
                continue;
            }
            if !std::mem::take(&mut it.spinning) {
                self.wake_in(thread, 0);
                continue;
            }
            it.work = 0;
            let core = it.core;
            if it.state == ThreadState::Running {
                if it.from <= self.now {
                    self.step(thread);
                } else {
                    self.set_alarm(core);
                }
            }
        }
    }

    fn exit(&mut self, thread: usize) {
        let run = &mut self.runs[self.threads[thread].job];
        run.living -= 1;
        if run.living == 0 {
            run.finished = Some(self.now);
            self.ended = true;
        }
        self.leave(thread, ThreadState::Ended);
    }
}
