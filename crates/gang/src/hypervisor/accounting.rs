//! Credits.

use super::machine::{Machine, TURN};
use super::thread::{Priority, Run, State};

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
        let earns = |&thread: &usize| {
            let it = &self.threads[thread];
            it.active && !matches!(it.state, State::Stopped | State::Ended)
        };
        let earners = |run: &Run| -> Vec<usize> { run.threads.clone().filter(earns).collect() };
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

    /// What each thread of each domain gets: by weight, and back what all together owe, but no more than it could
    /// use in a turn. What is over goes to the others.
    fn shares(&self, domains: &mut [(f64, Vec<usize>)]) -> Vec<f64> {
        // The order in which domains meet their most, so that what one leaves reaches all others.
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

    /// Gives a thread its share; what it then has.
    fn earn(&mut self, thread: usize, share: f64) -> f64 {
        let it = &mut self.threads[thread];
        it.credit += share;
        if it.credit < 0.0 {
            it.credit = it.credit.max(-MOST);
            it.priority = Priority::Over;
        } else {
            it.priority = Priority::Under;
            if it.credit > MOST {
                // It does not use what it gets. Half is kept, so that it is a little ahead when it comes back.
                it.active = false;
                it.credit /= 2.0;
            }
        }
        it.credit
    }
}
