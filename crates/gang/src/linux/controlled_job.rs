//! A job that the agent controls, whatever it consists of.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::Signal;

use super::means::{Means, Stopping};
use super::processes::Number;
use super::tasks::Tasks;
use super::usage::Counts;
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

/// A control group that a job stands in before the agent takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGroup {
    /// Its directory.
    pub directory: PathBuf,
    /// It was made for the agent. When the job is let go, its threads go back to the group above, and it is removed.
    pub made: bool,
}

/// Why a job can no longer be controlled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Nothing of it is left.
    Ended,
    /// It runs on, out of the agent's reach.
    Lost(String),
}

/// How a job of one kind is stopped, let run, kept to cores and measured.
pub trait Control: Debug + Send {
    /// Stops it.
    fn stop(&mut self) -> io::Result<()>;

    /// Stops it once more, where others may have let it run.
    fn stop_again(&mut self) -> io::Result<()> {
        self.stop()
    }

    /// Lets it run.
    fn start(&mut self) -> io::Result<()>;

    /// Keeps it to these CPUs.
    fn pin(&mut self, cores: &[usize]) -> io::Result<()>;

    /// Lets it run where it could before it was taken.
    fn unpin(&mut self) -> io::Result<()>;

    /// Whether it can be ranked behind others.
    fn ranks(&self) -> bool {
        false
    }

    /// Ranks it behind others, or as usual again.
    fn rank(&mut self, _behind: bool) -> io::Result<()> {
        Ok(())
    }

    /// Finds what belongs to it now.
    fn sweep(&mut self, _stopped: bool) -> io::Result<()> {
        Ok(())
    }

    /// Sends a signal to its processes. Jobs that the agent never ends have none.
    fn signal(&mut self, _signal: Signal) -> io::Result<()> {
        Ok(())
    }

    /// What it did since it was taken; `None` if that cannot be read.
    fn counts(&mut self) -> Option<Counts>;

    /// Files that become readable when its processes end; none if only `left` tells of its end.
    fn watch(&self) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// Whether it has left the agent's control, and why.
    fn left(&self) -> Option<Left>;

    /// How it is stopped.
    fn stopping(&self) -> Stopping;
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
