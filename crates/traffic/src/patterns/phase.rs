//! Phases: the parts of an iteration.

use topolane_fabric::InputError;

use crate::matrix::{Traffic, TrafficEntry};

/// The kind of communication of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseKind {
    /// Collective operations, as the messages of their algorithm.
    Collective,
    /// Messages between two ranks.
    PointToPoint,
}

impl PhaseKind {
    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            PhaseKind::Collective => "collective",
            PhaseKind::PointToPoint => "point-to-point",
        }
    }
}

/// A part of an iteration. The phases of an iteration together are its traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// What is exchanged in this phase.
    pub name: &'static str,
    /// The kind of communication.
    pub kind: PhaseKind,
    /// What the phase sends in one iteration.
    pub traffic: Traffic,
}

/// A phase under construction.
pub(super) struct Draft {
    ranks: u32,
    entries: Vec<TrafficEntry>,
}

impl Draft {
    /// Returns an empty draft with memory for `per_rank` messages or exchanges per rank.
    ///
    /// # Errors
    /// More entries than a matrix may have; checked before memory is allocated.
    pub fn new(ranks: u32, per_rank: u64) -> Result<Draft, InputError> {
        let entries = u64::from(ranks) * per_rank;
        if entries > Traffic::MOST as u64 {
            return Err(InputError::whole(format!(
                "{ranks} ranks with {per_rank} entries each are more than the {} entries that a \
                 traffic matrix may hold",
                Traffic::MOST
            )));
        }
        Ok(Draft { ranks, entries: Vec::with_capacity(entries as usize) })
    }

    /// Adds one message.
    pub fn send(&mut self, from: u32, to: u32, bytes: f64) {
        self.repeat(from, to, bytes, 1.0);
    }

    /// Adds `messages` messages, each of `bytes`.
    pub fn repeat(&mut self, from: u32, to: u32, bytes: f64, messages: f64) {
        self.entries.push(TrafficEntry { from, to, bytes: bytes * messages, messages });
    }

    /// Returns the finished phase.
    pub fn phase(self, name: &'static str, kind: PhaseKind) -> Result<Phase, InputError> {
        Ok(Phase { name, kind, traffic: Traffic::new(self.ranks, self.entries)? })
    }

    /// Returns the only phase of an iteration, made of messages between two ranks.
    pub fn alone(self, name: &'static str) -> Result<Vec<Phase>, InputError> {
        Ok(vec![self.phase(name, PhaseKind::PointToPoint)?])
    }
}
