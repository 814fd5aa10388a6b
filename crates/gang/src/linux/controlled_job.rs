//! A job under the agent's control, of any kind.

use std::io;

use super::control::{Control, OwnGroup};
use super::means::Means;
use super::processes::Number;
use super::tasks::Tasks;
use super::xen::XenDomain;

/// What a job consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobMembers {
    /// Processes and all their descendants.
    Processes(Vec<Number>),
    /// Single threads of a process; its other threads are left alone.
    Threads(Vec<Number>),
    /// Everything in existing control groups. Nothing is moved out of them.
    Groups(Vec<OwnGroup>),
    /// A Xen domain, by number and UUID.
    Domain(u32, [u8; 16]),
}

/// A job under the agent's control.
#[derive(Debug)]
pub struct ControlledJob {
    /// The means to stop and start it.
    pub control: Box<dyn Control>,
    /// Whether the job is stopped.
    pub stopped: bool,
    /// Whether the job is ranked behind others.
    pub behind: bool,
    /// The CPU numbers to which it is restricted; empty before the first time.
    pub cores: Vec<usize>,
}

impl ControlledJob {
    /// Takes over a job and stops it. `Err` is a sentence.
    pub fn take(means: &Means, name: &str, who: &JobMembers, share: usize) -> Result<Self, String> {
        let control: Box<dyn Control> = match (who, &means.xen) {
            (&JobMembers::Domain(number, uuid), Some(xen)) => {
                Box::new(XenDomain::take(xen, number, uuid)?)
            }
            (JobMembers::Domain(..), None) => {
                return Err("it is a domain of Xen, and this agent runs none".into());
            }
            (_, Some(_)) => return Err("this agent runs nothing but domains of Xen".into()),
            (JobMembers::Processes(listed), None) => {
                Box::new(Tasks::take(means, name, listed, false, share)?)
            }
            (JobMembers::Threads(listed), None) => {
                Box::new(Tasks::take(means, name, listed, true, share)?)
            }
            (JobMembers::Groups(groups), None) => Box::new(Tasks::adopt(groups)?),
        };
        Ok(ControlledJob { control, stopped: true, behind: false, cores: Vec::new() })
    }

    /// Stops the job.
    pub fn stop(&mut self) -> io::Result<()> {
        self.stopped = true;
        self.control.stop()
    }

    /// Lets the job run.
    pub fn start(&mut self) -> io::Result<()> {
        self.stopped = false;
        self.control.start()
    }

    /// Lets the job run as it did before it was taken.
    pub fn release(&mut self) -> io::Result<()> {
        self.rank(false).and(self.control.unpin()).and(self.start())
    }

    /// Restricts the job to these CPUs.
    pub fn pin(&mut self, cores: &[usize]) -> io::Result<()> {
        self.cores = cores.to_vec();
        self.control.pin(cores)
    }

    /// Ranks the job behind others, or normally again.
    pub fn rank(&mut self, behind: bool) -> io::Result<()> {
        self.behind = behind;
        self.control.rank(behind)
    }

    /// Finds the processes that belong to the job now, and stops those that started while it was stopped.
    pub fn sweep(&mut self) -> io::Result<()> {
        self.control.sweep(self.stopped)
    }
}
