//! How a job of any kind is controlled, and why it no longer is.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::Signal;

use super::means::Stopping;
use super::usage::Counts;

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

    /// Files that become readable when its processes end; none if only `left` reports its end.
    fn watch(&self) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// Whether it has left the agent's control, and why.
    fn left(&self) -> Option<Left>;

    /// How it is stopped.
    fn stopping(&self) -> Stopping;
}

/// What an error with a control group means.
pub(super) fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENODEV | libc::ENOENT) => "its control group was removed".into(),
        Some(libc::EPERM | libc::EACCES) => "no permission".into(),
        _ => error.to_string(),
    }
}
