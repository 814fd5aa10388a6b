//! The parts of an iteration.

use topolane_fabric::InputError;

use crate::matrix::{Entry, Traffic};

/// How the messages of a phase come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseKind {
    /// Collective operations, counted by the messages of their algorithm.
    Collective,
    /// Messages between two ranks.
    PointToPoint,
}

impl PhaseKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            PhaseKind::Collective => "collective",
            PhaseKind::PointToPoint => "point-to-point",
        }
    }
}

/// A part of an iteration: the phases of one iteration add up to its traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// What is exchanged.
    pub name: &'static str,
    /// How its messages come about.
    pub kind: PhaseKind,
    /// What it sends in one iteration.
    pub traffic: Traffic,
}

/// The messages of a phase as they are put together.
pub(super) struct Draft {
    ranks: u32,
    entries: Vec<Entry>,
}

impl Draft {
    /// Nothing yet, and room for `per_rank` messages or exchanges of every rank.
    ///
    /// # Errors
    /// More than a matrix may hold: refused before anything is allocated.
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

    /// One message.
    pub fn send(&mut self, from: u32, to: u32, bytes: f64) {
        self.repeat(from, to, bytes, 1.0);
    }

    /// Adds `messages` messages, each of `bytes`.
    pub fn repeat(&mut self, from: u32, to: u32, bytes: f64, messages: f64) {
        self.entries.push(Entry { from, to, bytes: bytes * messages, messages });
    }

    /// The phase.
    pub fn phase(self, name: &'static str, kind: PhaseKind) -> Result<Phase, InputError> {
        Ok(Phase { name, kind, traffic: Traffic::new(self.ranks, self.entries)? })
    }

    /// The only phase of an iteration, of messages between two ranks.
    pub fn alone(self, name: &'static str) -> Result<Vec<Phase>, InputError> {
        Ok(vec![self.phase(name, PhaseKind::PointToPoint)?])
    }
}
