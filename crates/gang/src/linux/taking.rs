//! Takes jobs under the agent's control.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;
use rustix::process::{getpgid, test_kill_process};

use super::control::{Control, OwnGroup};
use super::group::ControlGroup;
use super::means::{Means, Ranking, Stopping};
use super::processes::{self, Number};
use super::tasks::{Tasks, gone, pid};
use super::usage::Counters;

impl Tasks {
    /// Takes processes or single threads and stops them. `Err` is a sentence.
    pub fn take(
        means: &Means,
        name: &str,
        listed: &[Number],
        of_threads: bool,
        threads: usize,
    ) -> Result<Self, String> {
        let first = *listed.first().ok_or("a job needs at least one process or thread")?;
        for &number in listed {
            check(number, of_threads)?;
        }
        let failed = |error: io::Error| format!("a control group for process {first}: {error}");
        let group = ControlGroup::make(&means.hierarchies, name, first, of_threads, threads);
        let group = group.map_err(failed)?;
        let has = |way: &Stopping| match (way, &group) {
            (Stopping::Freeze, Some(group)) => !group.freeze.is_empty(),
            (Stopping::Freezer, Some(group)) => !group.freezer.is_empty(),
            (Stopping::Signals, _) => !of_threads,
            (Stopping::Pause, _) | (_, None) => false,
        };
        let ways = [means.stopping].into_iter().chain(Stopping::ALL);
        let Some(stopping) = ways.into_iter().find(has) else {
            return Err(format!(
                "thread {first} cannot be stopped without its process: that takes the freezer of control groups version 1"
            ));
        };
        let leads = !of_threads && pid(first).is_some_and(|pid| getpgid(Some(pid)) == Ok(pid));
        let mut held = Tasks {
            group,
            stopping,
            ranking: means.ranking,
            leader: leads.then_some(first),
            others: BTreeMap::new(),
            of_processes: !of_threads,
            affinity: BTreeMap::new(),
            counters: Counters::default(),
        };
        match held.gather(listed) {
            Ok(()) => Ok(held.counted()),
            Err(error) => {
                // Otherwise processes that the agent does not control could stay stopped.
                let _ = held.start();
                Err(format!("process {first} cannot be taken: {error}"))
            }
        }
    }

    /// Takes a job that is in groups of its own and stops it. The groups keep their weights and cores.
    pub fn adopt(groups: &[OwnGroup]) -> Result<Self, String> {
        let first = groups.first().ok_or("a job needs at least one control group")?;
        let named = first.directory.display();
        let group = ControlGroup::adopt(groups)?;
        let stopping = if group.freeze.is_empty() { Stopping::Freezer } else { Stopping::Freeze };
        let mut held = Tasks {
            group: Some(group),
            stopping,
            // Setting `cpu.idle` and resetting it loses the weight of a group.
            ranking: Ranking::Nothing,
            leader: None,
            others: BTreeMap::new(),
            of_processes: false,
            affinity: BTreeMap::new(),
            counters: Counters::default(),
        };
        let ours = |one: Number| Number::try_from(std::process::id()) == Ok(one);
        let members = held.processes().map_err(|error| format!("{named}: {error}"))?;
        if members.is_empty() {
            return Err(format!("{named} has no process"));
        }
        if let Some(&own) = members.iter().find(|&&one| one == 1 || ours(one)) {
            let what = if ours(own) { "the agent" } else { "init" };
            return Err(format!("{named} has process {own}, which is {what}"));
        }
        if let Err(error) = held.stop() {
            let _ = held.start();
            return Err(format!("{named} cannot be frozen: {error}"));
        }
        Ok(held.counted())
    }

    /// Starts counting what its threads do.
    fn counted(mut self) -> Self {
        self.counters = Counters::new(&self.threads().unwrap_or_default());
        self
    }

    /// Stops the job and moves all its processes into its groups, until none is left outside.
    fn gather(&mut self, listed: &[Number]) -> io::Result<()> {
        let remember = |one: Number| processes::stat(one).map(|stat| (one, stat.began));
        if self.of_processes {
            self.others =
                processes::tree(listed.iter().copied()).into_iter().filter_map(remember).collect();
        }
        self.stop()?;
        let Some(group) = &self.group else { return self.sweep(true) };
        loop {
            let (there, belong): (Vec<Number>, Vec<Number>) = if self.of_processes {
                (group.processes()?, processes::tree(listed.iter().copied()).into_iter().collect())
            } else {
                (group.threads()?, listed.to_vec())
            };
            let mut moved = false;
            for member in belong.into_iter().filter(|member| !there.contains(member)) {
                match group.take(member) {
                    Ok(()) => moved = true,
                    Err(error) if gone(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            if !moved {
                return self.sweep(true);
            }
        }
    }
}

/// Checks that a process or thread exists and that this user may stop it.
fn check(number: Number, thread: bool) -> Result<(), String> {
    let what = if thread { "thread" } else { "process" };
    let number_of = if thread { processes::process_of(number) } else { Some(number) };
    let missing = || format!("there is no {what} {number}");
    let process = number_of.filter(|&of| of > 0).and_then(pid).ok_or_else(missing)?;
    match test_kill_process(process) {
        Ok(()) if processes::lives(number) => Ok(()),
        Err(Errno::PERM) => {
            Err(format!("{what} {number} belongs to another user: no permission to stop it"))
        }
        _ => Err(missing()),
    }
}
