//! The usage of running jobs, and the priorities of waiting jobs computed from it.

use std::sync::Arc;

use topolane_placement::{Attributes, Request, Share};

use super::Slurm;
use super::config::Qos;
use super::jobs::{JobUsage, WaitingState, whose};
use super::priority::Asks;
use crate::view::View;

impl Slurm {
    /// Computes usage and priorities for every period that ended by `until`.
    pub(super) fn compute_priorities(&mut self, view: &View<'_>, until: f64) {
        if until < self.clock.period {
            return;
        }
        while self.clock.period <= until {
            let time = self.clock.period;
            self.fair.decay(time - self.clock.last_period);
            let mut running: Vec<u64> = self.running.keys().copied().collect();
            running.sort_unstable();
            for id in running {
                let Some(mut ran) = self.running.remove(&id) else { continue };
                self.charge(&ran, time);
                ran.counted = ran.counted.max(time);
                self.running.insert(id, ran);
            }
            self.clock.last_period = time;
            self.clock.period = time + self.config.priority.period;
        }
        self.fair.rank();
        self.set_priorities(view);
        self.note_change(until);
    }

    /// Sets the priority of every waiting job, as of the last computation.
    pub(super) fn set_priorities(&mut self, view: &View<'_>) {
        let time = self.clock.last_period;
        let never = Arc::clone(&self.never);
        let waiting = view.waiting.iter().map(|waiting| &*waiting.request);
        let there = self.never_waiting.clone();
        for request in waiting.chain(there.iter().map(|&place| &never[place].request)) {
            if let Some(&standing) = self.waiting.get(&request.id) {
                let priority = self.priority(request, standing, time);
                self.waiting.insert(request.id, WaitingState { priority, ..standing });
            }
        }
    }

    /// The priority of a waiting job at a given time.
    pub(super) fn priority(&self, request: &Request, standing: WaitingState, time: f64) -> f64 {
        let whose = whose(request);
        let of_nodes = self.processors_of(request);
        let processors = whose.processors.map(|asked| asked.max(of_nodes));
        let asks = Asks {
            nodes: request.nodes,
            processors: if standing.is_tested { processors } else { whose.processors },
            whose: &whose,
            age: time - standing.since,
        };
        self.factors.priority(asks, self.fair.factor(&whose))
    }

    /// The processors of a job on `nodes` nodes: all of them, or its cores on each.
    pub(super) fn processors_on(&self, nodes: usize, request: &Request) -> u64 {
        let of_a_node = match &request.share {
            Share::Whole => self.config.processors_per_node,
            Share::Part(amounts) => amounts.cores(),
        };
        nodes as u64 * of_a_node
    }

    /// The processors that a waiting job would get.
    pub(super) fn processors_of(&self, request: &Request) -> u64 {
        self.processors_on(request.nodes as usize, request)
    }

    /// Adds the usage of a job since it was last counted.
    pub(super) fn charge(&mut self, ran: &JobUsage, until: f64) {
        let seconds = (until - ran.counted.max(self.clock.last_period)).max(0.0);
        let factor = self.qos_of(&ran.whose).map_or(1.0, |qos| qos.usage_factor);
        self.fair.charge(&ran.whose, factor * ran.processors as f64, seconds);
    }

    pub(super) fn qos_of(&self, whose: &Attributes) -> Option<&Qos> {
        self.config.qos.iter().find(|qos| *qos.name == *whose.qos)
    }
}
