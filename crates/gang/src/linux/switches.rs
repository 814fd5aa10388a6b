//! The latest switches, and the cost of a switch.

use std::collections::VecDeque;

use super::clock::{Nanos, seconds};
use crate::job::JobId;

/// A switch from one slice to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceSwitch {
    /// When the switch was due.
    pub deadline: Nanos,
    /// When the switch began.
    pub began: Nanos,
    /// When all system calls of the switch had returned.
    pub ended: Nanos,
    /// The length of the slice in seconds.
    pub seconds: f64,
    /// The index of the slice in the round.
    pub slice: usize,
    /// The first jobs of the slice.
    pub first: Vec<JobId>,
    /// The fillers of the slice.
    pub fillers: Vec<JobId>,
}

/// The latest switches.
#[derive(Debug, Default)]
pub struct Switches {
    ring: VecDeque<SliceSwitch>,
    costs: VecDeque<Nanos>,
}

const KEPT: usize = 4096;
const COSTS: usize = 31;

impl Switches {
    /// Adds a switch. With `changed`, a job was stopped or started, so the time counts as the cost of a switch.
    pub fn push(&mut self, switch: SliceSwitch, changed: bool) {
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

    /// The cost of a switch in seconds: the median of the latest ones; `None` before the first.
    pub fn cost(&self) -> Option<f64> {
        let mut costs: Vec<Nanos> = self.costs.iter().copied().collect();
        costs.sort_unstable();
        costs.get(costs.len() / 2).map(|&cost| seconds(cost))
    }

    /// The latest switches, at most `most`; the last one is at the end.
    pub fn last(&self, most: usize) -> Vec<SliceSwitch> {
        self.ring.iter().skip(self.ring.len().saturating_sub(most)).cloned().collect()
    }
}
