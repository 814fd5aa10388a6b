//! The profile of a program: everything that matters for the choice of nodes.

use topolane_fabric::InputError;
use topolane_traffic::{Patterned, Phase, PhaseKind, Traffic};

/// A program with its number of processes, and what it computes, stores and sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    processes: u32,
    /// The phases of one iteration.
    pub phases: Vec<Phase>,
    /// Iterations of the run.
    pub iterations: f64,
    /// Seconds of computation of all processes together, if each runs alone on a node of the machine's first kind.
    pub core_seconds: f64,
    /// Bytes that the computation of all processes moves to and from memory.
    pub memory_traffic: f64,
    /// Bytes of memory that one process holds.
    pub memory: u64,
}

impl Profile {
    /// Returns a program of `processes` processes that only communicates: by a pattern, `iterations` times.
    ///
    /// # Errors
    /// The pattern refuses the number of processes.
    pub fn of(
        pattern: &Patterned,
        processes: u32,
        iterations: f64,
        seed: u64,
    ) -> Result<Profile, InputError> {
        let phases = pattern.phases(processes, seed)?;
        Ok(Profile { phases, ..Profile::sending(processes, iterations) })
    }

    /// Returns a program with a process for every rank of a matrix, which is the only phase of each iteration.
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
