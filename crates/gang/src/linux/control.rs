//! How a job of any kind is controlled, and why control over it may be lost.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::Signal;

use super::means::Stopping;
use super::usage::CoreTimes;

/// A control group that contained the job before the agent took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGroup {
    /// The directory of the group.
    pub directory: PathBuf,
    /// Whether the group was made for the agent. Then, when the job is released, its threads go back to the parent
    /// group and the group is removed.
    pub made: bool,
}

/// Why a job can no longer be controlled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlEnd {
    /// No process of the job is left.
    Ended,
    /// The job is still running, but the agent cannot control it.
    Lost(String),
}

/// How jobs of one kind are stopped, started, pinned to cores and measured.
pub trait Control: Debug + Send {
    /// Stops the job.
    fn stop(&mut self) -> io::Result<()>;

    /// Stops the job again, if something else may have started it.
    fn stop_again(&mut self) -> io::Result<()> {
        self.stop()
    }

    /// Lets the job run.
    fn start(&mut self) -> io::Result<()>;

    /// Restricts the job to these CPUs.
    fn pin(&mut self, cores: &[usize]) -> io::Result<()>;

    /// Lets the job run on the CPUs that it could use before.
    fn unpin(&mut self) -> io::Result<()>;

    /// Whether the job can be ranked behind others.
    fn ranks(&self) -> bool {
        false
    }

    /// Ranks the job behind others, or normally again.
    fn rank(&mut self, _behind: bool) -> io::Result<()> {
        Ok(())
    }

    /// Finds the processes and threads that belong to the job now.
    fn sweep(&mut self, _stopped: bool) -> io::Result<()> {
        Ok(())
    }

    /// Sends a signal to the job's processes. Jobs that the agent never ends have none.
    fn signal(&mut self, _signal: Signal) -> io::Result<()> {
        Ok(())
    }

    /// What the job has done since it was taken; `None` if that cannot be read.
    fn counts(&mut self) -> Option<CoreTimes>;

    /// Files that become readable when its processes end; empty if only `left` reports the end.
    fn watch(&self) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// Why the job has left the agent's control; `None` if it has not.
    fn left(&self) -> Option<ControlEnd>;

    /// How the job is stopped.
    fn stopping(&self) -> Stopping;
}

/// Explains an error of a control group.
pub(super) fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENOENT) => "its control group was removed".into(),
        Some(libc::EPERM | libc::EACCES) => "no permission".into(),
        _ => error.to_string(),
    }
}
