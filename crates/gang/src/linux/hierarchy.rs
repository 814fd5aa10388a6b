//! The agent's own control groups, one in each hierarchy where it may create one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::mounts::{self, Mounts};

/// The agent's group in a hierarchy, below which it creates the jobs' groups. Removed when dropped.
#[derive(Debug)]
pub struct Hierarchy {
    /// The directory of the group.
    pub own: PathBuf,
    /// The top directory of the hierarchy.
    top: PathBuf,
    /// The controller of the hierarchy; empty for version 2.
    controller: &'static str,
}

impl Hierarchy {
    /// Creates a group at the first place where it works.
    fn find(
        places: &[PathBuf],
        controller: &'static str,
        name: &str,
        works: impl Fn(&Path) -> io::Result<()>,
    ) -> Option<Self> {
        let top = places.first()?.clone();
        places.iter().find_map(|place| {
            let own = place.join(name);
            fs::create_dir(&own).ok()?;
            let made = Hierarchy { own, top: top.clone(), controller };
            works(&made.own).is_ok().then_some(made)
        })
    }

    /// The group of a process in this hierarchy.
    pub fn home(&self, process: super::processes::Number) -> PathBuf {
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        let path = mounts::path_in(&groups, self.controller).unwrap_or("/");
        self.top.join(path.trim_start_matches('/'))
    }

    /// Whether single threads can be moved in this hierarchy.
    pub fn takes_threads(&self) -> bool {
        !self.controller.is_empty()
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        // If groups of jobs remain, the next agent of this user removes them.
        let _ = fs::remove_dir(&self.own);
    }
}

/// All usable hierarchies.
#[derive(Debug, Default)]
pub struct Hierarchies {
    /// Each hierarchy once; version 2 may serve several of the purposes below.
    pub all: Vec<Hierarchy>,
    /// Index in `all` of the hierarchy that stops jobs by `cgroup.freeze`.
    pub unified: Option<usize>,
    /// Index of the one that stops jobs by `freezer.state`.
    pub freezer: Option<usize>,
    /// Index of the one that restricts jobs to cores by `cpuset.cpus`.
    pub cpuset: Option<usize>,
    /// Index of the one that ranks jobs by `cpu.idle`.
    pub cpu: Option<usize>,
}

impl Hierarchies {
    /// Creates the agent's groups with this name, for this number of cores.
    pub fn make(mounts: &Mounts, name: &str, cores: usize) -> Self {
        let mut made = Hierarchies::default();
        let freezes = |own: &Path| fs::write(own.join("cgroup.freeze"), "0");
        made.unified = made.add(Hierarchy::find(&mounts.unified, "", name, freezes));
        let thaws = |own: &Path| fs::write(own.join("freezer.state"), "THAWED");
        made.freezer = made.add(Hierarchy::find(&mounts.freezer, "freezer", name, thaws));
        let shares = share(cores);
        if let Some(unified) = made.unified {
            let own = &made.all[unified].own;
            let has = |controller| enable(own, controller).is_ok();
            made.cpuset = has("cpuset").then_some(unified);
            made.cpu = (has("cpu") && fs::write(own.join("cpu.weight"), &shares.1).is_ok())
                .then_some(unified);
        }
        if made.cpuset.is_none() {
            made.cpuset = made.add(Hierarchy::find(&mounts.cpuset, "cpuset", name, inherit));
        }
        if made.cpu.is_none() {
            let ranks = |own: &Path| {
                fs::metadata(own.join("cpu.idle"))?;
                fs::write(own.join("cpu.shares"), &shares.0)
            };
            made.cpu = made.add(Hierarchy::find(&mounts.cpu, "cpu", name, ranks));
        }
        made
    }

    fn add(&mut self, found: Option<Hierarchy>) -> Option<usize> {
        self.all.push(found?);
        Some(self.all.len() - 1)
    }
}

/// The `cpu.shares` and `cpu.weight` with which `threads` threads compete as if each were in no group.
pub fn share(threads: usize) -> (String, String) {
    let threads = threads as u64;
    ((1024 * threads).min(262_144).to_string(), (100 * threads).min(10_000).to_string())
}

/// Enables a controller for the groups below a version 2 group.
fn enable(own: &Path, controller: &str) -> io::Result<()> {
    let add = format!("+{controller}");
    if let Some(parent) = own.parent() {
        let _ = fs::write(parent.join("cgroup.subtree_control"), &add);
    }
    fs::write(own.join("cgroup.subtree_control"), &add)
}

/// Copies cores and memory from the parent: a version 1 cpuset is empty at first and accepts no process until it has
/// both.
pub fn inherit(own: &Path) -> io::Result<()> {
    let parent = own.parent().unwrap_or(own);
    for file in ["cpuset.mems", "cpuset.cpus"] {
        fs::write(own.join(file), fs::read(parent.join(file))?)?;
    }
    Ok(())
}
