//! Credits.

use super::machine::{Machine, TURN};
use super::thread::{Priority, State};

/// More credits than this and a thread stops earning; less than minus this it cannot owe.
const MOST: f64 = TURN as f64;

impl Machine {
    /// A thread that runs pays for the time since it last did.
    pub fn pay(&mut self, thread: usize) {
        let it = &mut self.threads[thread];
        it.credit -= (self.now - it.paid) as f64;
        it.paid = self.now;
    }

    /// A tick of a core: who runs is no longer boosted and takes part in the accounting, and the queue is put in the
    /// order of what the accounting changed.
    pub fn tick(&mut self, core: usize) {
        if let Some(current) = self.cores[core].current {
            self.pay(current);
            let it = &mut self.threads[current];
            it.active = true;
            if it.priority == Priority::Boost {
                it.priority = Priority::Under;
            }
        }
        self.sort(core);
        self.set_alarm(core);
    }

    /// Gives out a turn of every core by the weights of the jobs with active threads (`csched_acct`).
    pub fn account(&mut self) {
        let running: Vec<usize> = self.cores.iter().filter_map(|core| core.current).collect();
        for &thread in &running {
            self.pay(thread);
        }
        let takes_part = |thread: usize| {
            let it = &self.threads[thread];
            it.active && !matches!(it.state, State::Stopped | State::Ended)
        };
        let active = |run: usize| self.runs[run].threads.clone().filter(|&one| takes_part(one));
        let mut runs: Vec<(usize, f64)> =
            (0..self.runs.len()).map(|run| (run, active(run).count() as f64)).collect();
        runs.retain(|&(_, threads)| threads > 0.0);
        let shares = self.shares(&mut runs, active);
        for (run, share) in shares {
            for thread in self.runs[run].threads.clone() {
                self.earn(thread, share);
            }
        }
        for thread in running {
            let core = self.threads[thread].core;
            self.set_alarm(core);
        }
    }

    /// What each active thread of each job gets: by weight, but no more than it could use in a turn while all
    /// together owe nothing. What is over goes to others.
    fn shares<I: Iterator<Item = usize>>(
        &self,
        runs: &mut [(usize, f64)],
        active: impl Fn(usize) -> I,
    ) -> Vec<(usize, f64)> {
        let balance: f64 =
            runs.iter().flat_map(|&(run, _)| active(run)).map(|one| self.threads[one].credit).sum();
        let owed = (-balance).max(0.0);
        let weights: f64 = runs.iter().map(|&(run, threads)| self.runs[run].weight * threads).sum();
        let turn = TURN as f64;
        // In the order in which jobs meet their most, so that what they leave reaches all others.
        runs.sort_by(|one, other| self.runs[other.0].weight.total_cmp(&self.runs[one.0].weight));
        let mut total = turn * self.cores.len() as f64 + owed;
        let mut left = weights;
        let share = |&mut (run, _): &mut (usize, f64)| {
            let weight = self.runs[run].weight;
            let most = turn + owed * weight / weights;
            let fair = total * weight / left;
            let share = fair.min(most);
            let threads = active(run).count() as f64;
            total -= share * threads;
            left -= weight * threads;
            (run, share)
        };
        runs.iter_mut().map(share).collect()
    }

    fn earn(&mut self, thread: usize, share: f64) {
        let it = &mut self.threads[thread];
        if !it.active || matches!(it.state, State::Stopped | State::Ended) {
            return;
        }
        it.credit += share;
        if it.credit < 0.0 {
            it.credit = it.credit.max(-MOST);
            it.priority = Priority::Over;
            return;
        }
        it.priority = Priority::Under;
        if it.credit > MOST {
            // It does not use what it gets. Half is kept, so that it starts a little ahead when it comes back.
            it.active = false;
            it.credit /= 2.0;
        }
    }
}
