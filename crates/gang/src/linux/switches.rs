//! The last switches, and what one costs.

use std::collections::VecDeque;

use super::clock::{Nanos, seconds};
use crate::job::JobId;

/// One switch from a slice to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Switch {
    /// When it was due; when it began; when all was said to the kernel.
    pub deadline: Nanos,
    /// See `deadline`.
    pub began: Nanos,
    /// See `deadline`.
    pub ended: Nanos,
    /// Seconds that the slice has.
    pub seconds: f64,
    /// Which slice of the round.
    pub slice: usize,
    /// Its first jobs.
    pub first: Vec<JobId>,
    /// Its fillers.
    pub fillers: Vec<JobId>,
}

/// A ring of switches.
#[derive(Debug, Default)]
pub struct Switches {
    ring: VecDeque<Switch>,
    costs: VecDeque<Nanos>,
}

const KEPT: usize = 4096;
const COSTS: usize = 31;

impl Switches {
    /// Keeps a switch. `changed`: a job was stopped or started, so its time is what a switch costs.
    pub fn push(&mut self, switch: Switch, changed: bool) {
        if changed {
            self.costs.push_back(switch.ended - switch.began);
            if self.costs.len() > COSTS {
                self.costs.pop_front();
            }
        }
        self.ring.push_back(switch);
        if self.ring.len() > KEPT {
            self.ring.pop_front();
        }
    }

    /// What a switch costs, seconds: the median of the last ones; `None` before the first.
    pub fn cost(&self) -> Option<f64> {
        let mut costs: Vec<Nanos> = self.costs.iter().copied().collect();
        costs.sort_unstable();
        costs.get(costs.len() / 2).map(|&cost| seconds(cost))
    }

    /// The last ones, the latest at the end.
    pub fn last(&self, most: usize) -> Vec<Switch> {
        self.ring.iter().skip(self.ring.len().saturating_sub(most)).cloned().collect()
    }
}
