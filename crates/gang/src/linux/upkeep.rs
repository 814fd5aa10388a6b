//! What the driver does between switches: it measures, finds new processes, and lets go.

use super::clock::{Nanos, now};
use super::control::Left;
use super::controlled_job::ControlledJob;
use super::driver::Driver;
use super::entry::State;
use super::means::Stopping;
use crate::round::Slice;

impl Driver {
    /// Looks at what the jobs did, while those of the next slice run already.
    pub(super) fn measure(&mut self, slice: &Slice, began: Nanos, ended: Nanos) {
        for entry in self.jobs.values_mut() {
            let was = self.slice.first.contains(&entry.id);
            let is = slice.first.contains(&entry.id);
            if was || is {
                entry.ran_at = Some(if is { ended } else { began });
            }
            let over = entry.sample_closed();
            if was && !is {
                entry.close_sample(began);
            }
            if over || (was && slice.fillers.contains(&entry.id)) {
                if let Some(used) = entry.end_sample(ended) {
                    self.observer.learn(entry.id, entry.threads, used);
                }
            }
            if is && !was {
                entry.begin_sample(ended);
            }
        }
    }

    /// Measures those that run on and on; to be called now and then.
    pub fn look(&mut self) {
        let now = now();
        for entry in self.jobs.values_mut().filter(|entry| self.slice.first.contains(&entry.id)) {
            if let Some(used) = entry.end_sample(now) {
                self.observer.learn(entry.id, entry.threads, used);
            }
            entry.begin_sample(now);
        }
        let mut ended = Vec::new();
        for entry in self.jobs.values_mut().filter(|entry| entry.state == State::Scheduled) {
            match entry.held.as_ref().and_then(|held| held.control.left()) {
                Some(Left::Ended) => ended.push(entry.id),
                Some(Left::Lost(why)) if entry.lives() => entry.state = State::Lost(why),
                _ => {}
            }
        }
        for id in ended {
            self.ended(id);
        }
        self.let_go();
    }

    /// Stops by signals what jobs started meanwhile.
    pub(super) fn sweep(&mut self) {
        for entry in self.jobs.values_mut().filter(|entry| entry.state == State::Scheduled) {
            let swept =
                |held: &ControlledJob| held.stopped && held.control.stopping() == Stopping::Signals;
            if entry.held.as_ref().is_some_and(swept) {
                entry.with("its processes cannot be found", ControlledJob::sweep);
            }
        }
        self.let_go();
    }

    /// Lets go of jobs that were lost.
    fn let_go(&mut self) {
        let mut lost = false;
        for entry in self.jobs.values_mut().filter(|entry| matches!(entry.state, State::Lost(_))) {
            if let Some(mut held) = entry.held.take() {
                lost = true;
                // What can still be undone is.
                let _ = held.release();
                let _ = self.released.send(held);
            }
        }
        if lost {
            self.changed(false);
        }
    }

    /// All that is stopped, as after a watchdog let it run.
    pub fn stop_again(&mut self) {
        for entry in self.jobs.values_mut() {
            if entry.held.as_ref().is_some_and(|held| held.stopped) {
                entry.with("it cannot be stopped", |held| held.control.stop_again());
            }
        }
        for entry in self.jobs.values_mut() {
            let behind = entry.held.as_ref().is_some_and(|held| held.behind);
            if behind {
                entry.with("it cannot be ranked", |held| held.rank(true));
            }
        }
    }

    /// Lets everybody run, for good.
    pub fn release_all(&mut self) {
        for entry in self.jobs.values_mut() {
            if let Some(mut held) = entry.held.take() {
                let _ = held.release();
                let _ = self.released.send(held);
            }
        }
    }
}
