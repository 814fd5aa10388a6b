//! Finds the methods that work on this machine to stop jobs, restrict them to cores and rank them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::hierarchy::Hierarchies;
use super::mounts::mounts;
use super::priority;
use super::xen::Library;

/// How jobs are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// By `cgroup.freeze` of version 2.
    Freeze,
    /// By the freezer of version 1.
    Freezer,
    /// By SIGSTOP and SIGCONT, which the job's parents can notice.
    Signals,
    /// By pausing a Xen domain.
    Pause,
}

impl Stopping {
    /// All methods for processes, best first.
    pub const ALL: [Stopping; 3] = [Stopping::Freeze, Stopping::Freezer, Stopping::Signals];

    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Stopping::Freeze => "freeze",
            Stopping::Freezer => "freezer",
            Stopping::Signals => "signals",
            Stopping::Pause => "pause",
        }
    }

    fn works(self, hierarchies: &Hierarchies) -> bool {
        match self {
            Stopping::Freeze => hierarchies.unified.is_some(),
            Stopping::Freezer => hierarchies.freezer.is_some(),
            Stopping::Signals => true,
            Stopping::Pause => false,
        }
    }
}

/// How fillers are ranked behind first jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// By `cpu.idle` of a control group.
    Group,
    /// By `SCHED_IDLE` for every thread.
    Threads,
    /// Not possible, so there are no fillers.
    Nothing,
}

/// The methods that work on this machine.
#[derive(Debug)]
pub struct Means {
    /// How jobs are stopped.
    pub stopping: Stopping,
    /// How fillers are ranked.
    pub ranking: Ranking,
    /// The usable control groups.
    pub hierarchies: Hierarchies,
    /// What is missing and what is done instead, a sentence each.
    pub missing: Vec<String>,
    /// The Xen library, if jobs are domains.
    pub xen: Option<Library>,
}

impl Means {
    /// Returns the means to pause Xen domains with this library, libxenctrl.
    ///
    /// # Errors
    /// A sentence, if the library does not exist or lacks a function.
    pub fn of_xen(library: &str) -> Result<Self, String> {
        Ok(Means {
            stopping: Stopping::Pause,
            ranking: Ranking::Nothing,
            hierarchies: Hierarchies::default(),
            missing: Vec::new(),
            xen: Some(Library::load(library)?),
        })
    }

    /// Finds methods that work, trying the best first; with `stopping`, only this method is tried for stopping.
    ///
    /// # Errors
    /// A sentence, if the requested method does not work.
    pub fn find(stopping: Option<Stopping>, cores: usize) -> Result<Self, String> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("topolane-gang-{}-{number}", std::process::id());
        let hierarchies = Hierarchies::make(&mounts(), &name, cores);
        let mut missing = Vec::new();
        let works = |way: &Stopping| way.works(&hierarchies);
        let stopping = match stopping {
            Some(way) if works(&way) => way,
            Some(way) => {
                let name = way.name();
                return Err(format!(
                    "switching by {name} does not work here: no control group of that kind may be made"
                ));
            }
            None => Stopping::ALL.into_iter().find(works).unwrap_or(Stopping::Signals),
        };
        if hierarchies.unified.is_none() && hierarchies.freezer.is_none() {
            missing.push(
                "no control group that freezes may be made: jobs are stopped by signals".into(),
            );
        }
        if hierarchies.cpuset.is_none() {
            missing.push("no cpuset may be made: jobs are kept to their cores by affinity, which they can change".into());
        }
        let ranking = match hierarchies.cpu {
            Some(_) => Ranking::Group,
            None if idle_and_back() => Ranking::Threads,
            None => Ranking::Nothing,
        };
        if ranking == Ranking::Nothing {
            missing.push("no job may be ranked behind others and back (neither cpu.idle nor CAP_SYS_NICE): no fillers".into());
        }
        Ok(Means { stopping, ranking, hierarchies, missing, xen: None })
    }
}

/// Whether threads may get idle priority, and their normal one back.
fn idle_and_back() -> bool {
    let tried = thread::spawn(|| priority::rank(0, true).and_then(|()| priority::rank(0, false)));
    tried.join().is_ok_and(|tried| tried.is_ok())
}
