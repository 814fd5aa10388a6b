//! The agent's own control groups, one in each hierarchy that lets it have one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::mounts::{self, Mounts};

/// A group of ours, below which the jobs' groups are made. Removed when dropped.
#[derive(Debug)]
pub struct Hierarchy {
    /// Its directory.
    pub own: PathBuf,
    /// The top of the hierarchy.
    top: PathBuf,
    /// None for version 2.
    controller: &'static str,
}

impl Hierarchy {
    /// The first place where a group can be made that works.
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

    /// Where a process is in this hierarchy.
    pub fn home(&self, process: super::processes::Number) -> PathBuf {
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        let path = mounts::path_in(&groups, self.controller).unwrap_or("/");
        self.top.join(path.trim_start_matches('/'))
    }

    /// Whether single threads may be moved here.
    pub fn takes_threads(&self) -> bool {
        !self.controller.is_empty()
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        // Where jobs' groups are left, the next agent of this user removes them.
        let _ = fs::remove_dir(&self.own);
    }
}

/// All hierarchies in which there is something to be had.
#[derive(Debug, Default)]
pub struct Hierarchies {
    /// Each but once: version 2 may be several of the following.
    pub all: Vec<Hierarchy>,
    /// An index of `all`: stops by `cgroup.freeze`.
    pub unified: Option<usize>,
    /// Stops by `freezer.state`.
    pub freezer: Option<usize>,
    /// Keeps to cores by `cpuset.cpus`.
    pub cpuset: Option<usize>,
    /// Ranks by `cpu.idle`.
    pub cpu: Option<usize>,
}

impl Hierarchies {
    /// Makes the agent's groups, by that name, for that many cores.
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

/// `cpu.shares` and `cpu.weight` with which `threads` threads compete as if each were in no group.
pub fn share(threads: usize) -> (String, String) {
    let threads = threads as u64;
    ((1024 * threads).min(262_144).to_string(), (100 * threads).min(10_000).to_string())
}

/// Lets groups below a group of version 2 use a controller.
fn enable(own: &Path, controller: &str) -> io::Result<()> {
    let add = format!("+{controller}");
    if let Some(parent) = own.parent() {
        let _ = fs::write(parent.join("cgroup.subtree_control"), &add);
    }
    fs::write(own.join("cgroup.subtree_control"), &add)
}

/// A cpuset of version 1 is empty at first, and takes no process until it has cores and memory.
pub fn inherit(own: &Path) -> io::Result<()> {
    let parent = own.parent().unwrap_or(own);
    for file in ["cpuset.mems", "cpuset.cpus"] {
        fs::write(own.join(file), fs::read(parent.join(file))?)?;
    }
    Ok(())
}
