//! The driver's upkeep between switches: it measures jobs, finds new processes, and releases lost jobs.

use super::clock::{Nanos, now};
use super::control::ControlEnd;
use super::controlled_job::ControlledJob;
use super::driver::Driver;
use super::entry::JobState;
use super::means::Stopping;
use crate::round::Slice;

impl Driver {
    /// Measures what the jobs did, while the next slice already runs.
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
            if (over || (was && slice.fillers.contains(&entry.id)))
                && let Some(used) = entry.end_sample(ended)
            {
                self.observer.learn(entry.id, entry.threads, used);
            }
            if is && !was {
                entry.begin_sample(ended);
            }
        }
    }

    /// Measures jobs that run continuously; must be called regularly.
    pub fn look(&mut self) {
        let now = now();
        for entry in self.jobs.values_mut().filter(|entry| self.slice.first.contains(&entry.id)) {
            if let Some(used) = entry.end_sample(now) {
                self.observer.learn(entry.id, entry.threads, used);
            }
            entry.begin_sample(now);
        }
        let mut ended = Vec::new();
        for entry in self.jobs.values_mut().filter(|entry| entry.state == JobState::Scheduled) {
            match entry.held.as_ref().and_then(|held| held.control.left()) {
                Some(ControlEnd::Ended) => ended.push(entry.id),
                Some(ControlEnd::Lost(why)) if entry.lives() => entry.state = JobState::Lost(why),
                _ => {}
            }
        }
        for id in ended {
            self.ended(id);
        }
        self.let_go();
    }

    /// Stops, by signals, processes that stopped jobs have started meanwhile.
    pub(super) fn sweep(&mut self) {
        for entry in self.jobs.values_mut().filter(|entry| entry.state == JobState::Scheduled) {
            let swept =
                |held: &ControlledJob| held.stopped && held.control.stopping() == Stopping::Signals;
            if entry.held.as_ref().is_some_and(swept) {
                entry.with("its processes cannot be found", ControlledJob::sweep);
            }
        }
        self.let_go();
    }

    /// Releases jobs that were lost.
    fn let_go(&mut self) {
        let mut lost = false;
        for entry in self.jobs.values_mut().filter(|entry| matches!(entry.state, JobState::Lost(_)))
        {
            if let Some(mut held) = entry.held.take() {
                lost = true;
                // Undo whatever can still be undone.
                let _ = held.release();
                let _ = self.released.send(held);
            }
        }
        if lost {
            self.changed(false);
        }
    }

    /// Stops all stopped jobs again, in case a watchdog has started them.
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

    /// Lets all jobs run permanently.
    pub fn release_all(&mut self) {
        for entry in self.jobs.values_mut() {
            if let Some(mut held) = entry.held.take() {
                let _ = held.release();
                let _ = self.released.send(held);
            }
        }
    }
}
