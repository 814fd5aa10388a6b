//! What a program does, as far as the choice of nodes goes.

use topolane_fabric::InputError;
use topolane_traffic::{Patterned, Phase, PhaseKind, Traffic};

/// A program of some processes: what it computes, holds and sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    processes: u32,
    /// The phases of one iteration.
    pub phases: Vec<Phase>,
    /// Iterations of the run.
    pub iterations: f64,
    /// Seconds of computation of all processes together, each alone on a node of the machine's
    /// first kind.
    pub core_seconds: f64,
    /// Bytes that the computation of all processes moves to and from memory.
    pub memory_traffic: f64,
    /// Bytes that one process holds.
    pub memory: u64,
}

impl Profile {
    /// `processes` that send by a pattern, `iterations` times, compute nothing and hold nothing.
    ///
    /// # Errors
    /// What the pattern refuses.
    pub fn of(
        pattern: &Patterned,
        processes: u32,
        iterations: f64,
        seed: u64,
    ) -> Result<Profile, InputError> {
        let phases = pattern.phases(processes, seed)?;
        Ok(Profile { phases, ..Profile::sending(processes, iterations) })
    }

    /// A process for every rank of a matrix, which is one phase of every iteration.
    pub fn of_traffic(traffic: Traffic, kind: PhaseKind, iterations: f64) -> Profile {
        let processes = traffic.ranks();
        let phases = vec![Phase { name: "traffic", kind, traffic }];
        Profile { phases, ..Profile::sending(processes, iterations) }
    }

    fn sending(processes: u32, iterations: f64) -> Profile {
        Profile {
            processes,
            phases: Vec::new(),
            iterations,
            core_seconds: 0.0,
            memory_traffic: 0.0,
            memory: 0,
        }
    }

    /// Number of processes.
    pub fn processes(&self) -> u32 {
        self.processes
    }
}
