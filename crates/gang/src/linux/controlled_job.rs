//! A job that the agent controls, whatever it consists of.

use std::io;

use super::control::{Control, OwnGroup};
use super::means::Means;
use super::processes::Number;
use super::tasks::Tasks;
use super::xen::Domain;

/// What a job consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Members {
    /// Processes and all that descend from them.
    Processes(Vec<Number>),
    /// Single threads of a process that is otherwise left alone.
    Threads(Vec<Number>),
    /// All that is in control groups which exist already. Nothing is moved out of them.
    Groups(Vec<OwnGroup>),
    /// A domain of Xen, by its number and its UUID.
    Domain(u32, [u8; 16]),
}

/// A job that the agent controls.
#[derive(Debug)]
pub struct ControlledJob {
    /// How it is stopped and let run.
    pub control: Box<dyn Control>,
    /// It is not let run.
    pub stopped: bool,
    /// It is ranked behind others.
    pub behind: bool,
    /// CPU numbers that it is kept to; empty before the first time.
    pub cores: Vec<usize>,
}

impl ControlledJob {
    /// Takes a job, stopped. `Err` is a sentence.
    pub fn take(means: &Means, name: &str, who: &Members, share: usize) -> Result<Self, String> {
        let control: Box<dyn Control> = match (who, &means.xen) {
            (&Members::Domain(number, uuid), Some(xen)) => {
                Box::new(Domain::take(xen, number, uuid)?)
            }
            (Members::Domain(..), None) => {
                return Err("it is a domain of Xen, and this agent runs none".into());
            }
            (_, Some(_)) => return Err("this agent runs nothing but domains of Xen".into()),
            (Members::Processes(listed), None) => {
                Box::new(Tasks::take(means, name, listed, false, share)?)
            }
            (Members::Threads(listed), None) => {
                Box::new(Tasks::take(means, name, listed, true, share)?)
            }
            (Members::Groups(groups), None) => Box::new(Tasks::adopt(groups)?),
        };
        Ok(ControlledJob { control, stopped: true, behind: false, cores: Vec::new() })
    }

    /// Stops it.
    pub fn stop(&mut self) -> io::Result<()> {
        self.stopped = true;
        self.control.stop()
    }

    /// Lets it run.
    pub fn start(&mut self) -> io::Result<()> {
        self.stopped = false;
        self.control.start()
    }

    /// Lets it run as it did before it was taken.
    pub fn release(&mut self) -> io::Result<()> {
        self.rank(false).and(self.control.unpin()).and(self.start())
    }

    /// Keeps it to these CPUs.
    pub fn pin(&mut self, cores: &[usize]) -> io::Result<()> {
        self.cores = cores.to_vec();
        self.control.pin(cores)
    }

    /// Ranks it behind others, or as usual again.
    pub fn rank(&mut self, behind: bool) -> io::Result<()> {
        self.behind = behind;
        self.control.rank(behind)
    }

    /// Finds what belongs to it now, and stops what began while it was stopped.
    pub fn sweep(&mut self) -> io::Result<()> {
        self.control.sweep(self.stopped)
    }
}
