//! The credits of Xen's credit scheduler.

use super::machine::{SimulatedMachine, TURN};
use super::thread::{SimulatedJob, ThreadPriority, ThreadState};

/// A thread with more credits than this stops earning, and it can owe at most this number.
const MOST: f64 = TURN as f64;

impl SimulatedMachine {
    /// Charges a running thread for the time since it last paid.
    pub fn pay(&mut self, thread: usize) {
        let it = &mut self.threads[thread];
        it.credit -= (self.now - it.paid) as f64;
        it.paid = self.now;
    }

    /// A tick of a core. The running thread loses its boost and takes part in the accounting. The queue is sorted
    /// again, because the accounting may have changed priorities.
    pub fn tick(&mut self, core: usize) {
        if let Some(current) = self.cores[core].current {
            self.pay(current);
            let it = &mut self.threads[current];
            it.active = true;
            if it.priority == ThreadPriority::Boost {
                it.priority = ThreadPriority::Under;
            }
        }
        self.sort(core);
        self.set_alarm(core);
    }

    /// Distributes one turn per core over the jobs with active threads, by weight (`csched_acct`).
    pub fn account(&mut self) {
        let running: Vec<usize> = self.cores.iter().filter_map(|core| core.current).collect();
        for &thread in &running {
            self.pay(thread);
        }
        let earns = |&thread: &usize| {
            let it = &self.threads[thread];
            it.active && !matches!(it.state, ThreadState::Stopped | ThreadState::Ended)
        };
        let earners =
            |run: &SimulatedJob| -> Vec<usize> { run.threads.clone().filter(earns).collect() };
        let mut domains: Vec<(f64, Vec<usize>)> =
            self.runs.iter().map(|run| (run.weight, earners(run))).collect();
        domains.retain(|(_, threads)| !threads.is_empty());
        let shares = self.shares(&mut domains);
        let mut balance = 0.0;
        for ((_, threads), share) in domains.iter().zip(shares) {
            balance += threads.iter().map(|&thread| self.earn(thread, share)).sum::<f64>();
        }
        self.owed = f64::max(-balance, 0.0);
        for thread in running {
            let core = self.threads[thread].core;
            self.set_alarm(core);
        }
    }

    /// The share of each thread of each domain: by weight, plus what all threads together owe, but at most what it
    /// could use in a turn. The rest goes to the others.
    fn shares(&self, domains: &mut [(f64, Vec<usize>)]) -> Vec<f64> {
        // Domains reach their maximum in this order, so the rest of each one goes to all that follow.
        domains.sort_by(|one, other| other.0.total_cmp(&one.0));
        let demand = |(weight, threads): &(f64, Vec<usize>)| weight * threads.len() as f64;
        let weights: f64 = domains.iter().map(demand).sum();
        let mut total = TURN as f64 * self.cores.len() as f64 + self.owed;
        let mut left = weights;
        let share = |domain: &(f64, Vec<usize>)| {
            let most = TURN as f64 + self.owed * domain.0 / weights;
            let share = most.min(total * domain.0 / left);
            total -= share * domain.1.len() as f64;
            left -= demand(domain);
            share
        };
        domains.iter().map(share).collect()
    }

    /// Gives a thread its share and returns the credits that it then has.
    fn earn(&mut self, thread: usize, share: f64) -> f64 {
        let it = &mut self.threads[thread];
        it.credit += share;
        if it.credit < 0.0 {
            it.credit = it.credit.max(-MOST);
            it.priority = ThreadPriority::Over;
        } else {
            it.priority = ThreadPriority::Under;
            if it.credit > MOST {
                // The thread does not use its share. It keeps half of its credits, so that it has a small lead when it
                // comes back.
                it.active = false;
                it.credit /= 2.0;
            }
        }
        it.credit
    }
}
