//! A job made of Linux processes, threads or control groups.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, kill_process, kill_process_group, pidfd_open,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::control::{Control, ControlEnd, describe};
use super::files;
use super::group::ControlGroup;
use super::means::{Ranking, Stopping};
use super::priority;
use super::processes::{self, Number};
use super::usage::{CoreTimes, Counters};

/// The processes, threads or groups of one job under the agent's control.
#[derive(Debug)]
pub struct Tasks {
    pub(super) group: Option<ControlGroup>,
    pub(super) stopping: Stopping,
    pub(super) ranking: Ranking,
    /// The process group led by the first process; `None` if it leads none.
    pub(super) leader: Option<Number>,
    /// Processes outside that group, as last seen. The start time distinguishes them from later processes with the same
    /// number.
    pub(super) others: BTreeMap<Number, u64>,
    /// Whether the job consists of processes with all descendants, and not of single threads or groups.
    pub(super) of_processes: bool,
    /// The affinity of its threads before they were restricted to cores.
    pub(super) affinity: BTreeMap<Number, CpuSet>,
    pub(super) counters: Counters,
}

impl Tasks {
    fn switch(&self, freeze: &str, freezer: &str, signal: Signal) -> io::Result<()> {
        let (files, value) = match (self.stopping, &self.group) {
            (Stopping::Freeze, Some(group)) => (&group.freeze, freeze),
            (Stopping::Freezer, Some(group)) => (&group.freezer, freezer),
            _ => return self.send(signal),
        };
        // If one write fails, the others must still be done.
        files.iter().map(|file| files::set(file, value)).fold(Ok(()), io::Result::and)
    }

    /// Sends a signal to all processes that belonged to it at the last sweep.
    fn send(&self, signal: Signal) -> io::Result<()> {
        if let Some(leader) = self.leader.and_then(pid) {
            unless_gone(kill_process_group(leader, signal))?;
        }
        let mut others = self.others.keys().filter_map(|&other| pid(other));
        others.try_for_each(|other| unless_gone(kill_process(other, signal)))
    }

    /// The living processes of the job.
    pub(super) fn processes(&self) -> io::Result<Vec<Number>> {
        if let Some(group) = &self.group {
            let members = if self.of_processes {
                group.processes()?
            } else {
                let threads = group.threads()?.into_iter();
                let of: BTreeSet<Number> = threads.filter_map(processes::process_of).collect();
                of.into_iter().collect()
            };
            return Ok(members.into_iter().filter(|&one| processes::lives(one)).collect());
        }
        let same = |(&one, &began): (&Number, &u64)| {
            processes::stat(one).is_some_and(|stat| stat.began == began).then_some(one)
        };
        let known = self.others.iter().filter_map(same).chain(self.leader);
        Ok(processes::tree(known).into_iter().collect())
    }

    /// The threads of the job.
    pub(super) fn threads(&self) -> io::Result<Vec<Number>> {
        match &self.group {
            Some(group) => group.threads(),
            None => Ok(self.processes()?.into_iter().flat_map(processes::threads).collect()),
        }
    }
}

impl Control for Tasks {
    fn stop(&mut self) -> io::Result<()> {
        self.switch("1", "FROZEN", Signal::STOP)
    }

    fn start(&mut self) -> io::Result<()> {
        self.switch("0", "THAWED", Signal::CONT)
    }

    fn pin(&mut self, cores: &[usize]) -> io::Result<()> {
        if let Some(ControlGroup { cpus: Some(file), .. }) = &self.group {
            let list: Vec<String> = cores.iter().map(ToString::to_string).collect();
            return files::set(file, &list.join(","));
        }
        let mut set = CpuSet::new();
        for &core in cores {
            set.set(core);
        }
        let threads = self.threads()?;
        if self.affinity.is_empty() {
            let allowed = |&one: &Number| Some((one, sched_getaffinity(pid(one)).ok()?));
            self.affinity = threads.iter().filter_map(allowed).collect();
        }
        let mut threads = threads.into_iter().filter_map(pid);
        threads.try_for_each(|thread| unless_gone(sched_setaffinity(Some(thread), &set)))
    }

    /// Gives its threads their former affinity back. Threads that started meanwhile get that of their process.
    fn unpin(&mut self) -> io::Result<()> {
        let before = std::mem::take(&mut self.affinity);
        if before.is_empty() {
            return Ok(());
        }
        self.threads()?.into_iter().try_for_each(|thread| {
            let process = || before.get(&processes::process_of(thread)?);
            let Some(set) = before.get(&thread).or_else(process).or(before.values().next()) else {
                return Ok(());
            };
            unless_gone(sched_setaffinity(pid(thread), set))
        })
    }

    fn ranks(&self) -> bool {
        self.ranking != Ranking::Nothing
    }

    fn rank(&mut self, behind: bool) -> io::Result<()> {
        match (self.ranking, &self.group) {
            (_, Some(ControlGroup { idle: Some(file), .. })) => {
                files::set(file, if behind { "1" } else { "0" })
            }
            (Ranking::Nothing, _) => Ok(()),
            _ => self.threads()?.into_iter().try_for_each(|thread| {
                match priority::rank(thread, behind) {
                    Err(error) if !gone(&error) => Err(error),
                    _ => Ok(()),
                }
            }),
        }
    }

    /// Finds the processes that belong to it now. Stops, by signals, those that started while others were being
    /// stopped.
    fn sweep(&mut self, stopped: bool) -> io::Result<()> {
        if !self.of_processes {
            return Ok(());
        }
        loop {
            let before = self.others.clone();
            let leader = self.leader;
            let outside = |one: &Number| {
                leader.is_none()
                    || pid(*one).and_then(|one| getpgid(Some(one)).ok()) != leader.and_then(pid)
            };
            let now = self.processes()?.into_iter().filter(outside);
            self.others = now.filter_map(|one| Some((one, processes::stat(one)?.began))).collect();
            let new = self.others.keys().any(|one| !before.contains_key(one));
            if !new || self.stopping != Stopping::Signals || !stopped {
                return Ok(());
            }
            self.send(Signal::STOP)?;
        }
    }

    /// Sends a signal to the processes. The agent never ends jobs of threads or groups.
    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if !self.of_processes {
            return Ok(());
        }
        self.sweep(false)?;
        self.send(signal)
    }

    fn counts(&mut self) -> Option<CoreTimes> {
        let threads = self.threads().ok()?;
        Some(self.counters.read(&threads))
    }

    fn watch(&self) -> Vec<OwnedFd> {
        let living = self.processes().unwrap_or_default();
        let open = |one| pidfd_open(Pid::from_raw(one)?, PidfdFlags::empty()).ok();
        living.into_iter().filter(|&one| processes::lives(one)).filter_map(open).collect()
    }

    /// Checks whether its processes are still in its control group.
    fn left(&self) -> Option<ControlEnd> {
        self.group.as_ref()?;
        match self.threads() {
            Ok(threads) if threads.is_empty() => {
                Some(ControlEnd::Lost("its processes were moved out of its control group".into()))
            }
            Ok(_) => None,
            Err(error) => Some(ControlEnd::Lost(describe(&error))),
        }
    }

    fn stopping(&self) -> Stopping {
        self.stopping
    }
}

pub(super) fn pid(number: Number) -> Option<Pid> {
    Pid::from_raw(number)
}

pub(super) fn gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn unless_gone(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Err(Errno::SRCH) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
