//! With what jobs are stopped, kept to their cores and ranked here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::hierarchy::Hierarchies;
use super::mounts::mounts;
use super::priority;
use super::xen::Library;

/// How jobs are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// `cgroup.freeze` of version 2.
    Freeze,
    /// The freezer of version 1.
    Freezer,
    /// SIGSTOP and SIGCONT, which a job's parents can see.
    Signals,
    /// Pauses of a domain of Xen.
    Pause,
}

impl Stopping {
    /// All for processes, best first.
    pub const ALL: [Stopping; 3] = [Stopping::Freeze, Stopping::Freezer, Stopping::Signals];

    /// Its name.
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
    /// `cpu.idle` of a control group.
    Group,
    /// `SCHED_IDLE` of every thread.
    Threads,
    /// Not at all: no fillers.
    Nothing,
}

/// What works here.
#[derive(Debug)]
pub struct Means {
    /// How jobs are stopped.
    pub stopping: Stopping,
    /// How fillers are ranked.
    pub ranking: Ranking,
    /// The control groups there are.
    pub hierarchies: Hierarchies,
    /// What is missing, and what is done instead: a sentence each.
    pub missing: Vec<String>,
    /// Xen, if the jobs are domains.
    pub xen: Option<Library>,
}

impl Means {
    /// Pauses domains of Xen by this library, libxenctrl.
    ///
    /// # Errors
    /// A sentence, where there is no such library, or it lacks a function.
    pub fn of_xen(library: &str) -> Result<Self, String> {
        Ok(Means {
            stopping: Stopping::Pause,
            ranking: Ranking::Nothing,
            hierarchies: Hierarchies::default(),
            missing: Vec::new(),
            xen: Some(Library::load(library)?),
        })
    }

    /// Tries what works, best first, or only the way to stop that is asked for.
    ///
    /// # Errors
    /// A sentence, where the way that is asked for does not work.
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

/// Whether threads may be given idle priority, and also their usual one back.
fn idle_and_back() -> bool {
    let tried = thread::spawn(|| priority::rank(0, true).and_then(|()| priority::rank(0, false)));
    tried.join().is_ok_and(|tried| tried.is_ok())
}
