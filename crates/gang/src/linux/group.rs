//! The control groups of a job.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::files;
use super::hierarchy::{Hierarchies, inherit, share};
use super::processes::{self, Number};

/// Its directories in the hierarchies, with the files that a switch needs kept open. Removed when dropped, whoever is
/// in it going back to where the job came from.
#[derive(Debug)]
pub struct Group {
    places: Places,
    processes: File,
    threads: File,
    /// `cgroup.freeze`.
    pub freeze: Option<File>,
    /// `freezer.state`.
    pub freezer: Option<File>,
    /// `cpuset.cpus`.
    pub cpus: Option<File>,
    /// `cpu.idle`.
    pub idle: Option<File>,
}

/// Of each hierarchy: the group, and where members go when it is removed.
#[derive(Debug)]
struct Places {
    pairs: Vec<(PathBuf, PathBuf)>,
    of_threads: bool,
}

impl Group {
    /// Makes the groups of a job whose first member is that; of single threads only where threads can be moved.
    /// `None` where there is no hierarchy for it.
    pub fn make(
        hierarchies: &Hierarchies,
        name: &str,
        member: Number,
        of_threads: bool,
        share_of: usize,
    ) -> io::Result<Option<Self>> {
        let of = |at: Option<usize>| at.map(|at| &hierarchies.all[at]);
        let fits = |at: usize| !of_threads || hierarchies.all[at].takes_threads();
        let mut places = Places { pairs: Vec::new(), of_threads };
        let usable = (0..hierarchies.all.len()).filter(|&at| fits(at));
        for hierarchy in usable.map(|at| &hierarchies.all[at]) {
            let directory = hierarchy.own.join(name);
            fs::create_dir(&directory)?;
            places.pairs.push((directory, hierarchy.home(member)));
        }
        let Some((first, _)) = places.pairs.first() else { return Ok(None) };
        let list = |file: &str| File::open(first.join(file));
        let v2 = first.join("cgroup.threads").exists();
        let (processes, threads) =
            (list("cgroup.procs")?, list(if v2 { "cgroup.threads" } else { "tasks" })?);
        let open = |at: Option<usize>, file: &str| {
            let Some(hierarchy) = of(at.filter(|&at| fits(at))) else { return Ok(None) };
            files::to_write(&hierarchy.own.join(name).join(file)).map(Some)
        };
        let group = Group {
            processes,
            threads,
            freeze: open(hierarchies.unified, "cgroup.freeze")?,
            freezer: open(hierarchies.freezer, "freezer.state")?,
            cpus: open(hierarchies.cpuset, "cpuset.cpus")?,
            idle: open(hierarchies.cpu, "cpu.idle")?,
            places,
        };
        if let Some(cpuset) = of(hierarchies.cpuset).filter(|cpuset| cpuset.takes_threads()) {
            inherit(&cpuset.own.join(name))?;
        }
        if let Some(cpu) = of(hierarchies.cpu.filter(|&at| fits(at))) {
            let (shares, weight) = share(share_of);
            let directory = cpu.own.join(name);
            fs::write(directory.join("cpu.shares"), shares)
                .or_else(|_| fs::write(directory.join("cpu.weight"), weight))?;
        }
        Ok(Some(group))
    }

    /// Moves a process, or a single thread, here.
    pub fn take(&self, member: Number) -> io::Result<()> {
        let Places { pairs, of_threads } = &self.places;
        pairs.iter().try_for_each(|(here, _)| move_to(here, member, *of_threads))
    }

    /// The processes in it.
    pub fn processes(&self) -> io::Result<Vec<Number>> {
        Ok(processes::read(&files::text(&self.processes)?))
    }

    /// The threads in it.
    pub fn threads(&self) -> io::Result<Vec<Number>> {
        Ok(processes::read(&files::text(&self.threads)?))
    }

    /// Its directories.
    pub fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        self.places.pairs.iter().map(|(here, _)| here)
    }
}

fn move_to(directory: &Path, member: Number, thread: bool) -> io::Result<()> {
    let file = if thread { "tasks" } else { "cgroup.procs" };
    fs::write(directory.join(file), member.to_string())
}

impl Drop for Places {
    fn drop(&mut self) {
        for (here, home) in &self.pairs {
            for _ in 0..TRIES {
                let listed = if self.of_threads { "tasks" } else { "cgroup.procs" };
                let members = fs::read_to_string(here.join(listed)).unwrap_or_default();
                let above = here.ancestors().nth(2).unwrap_or(here);
                for member in processes::read(&members) {
                    // A member may have ended, and its home may be gone.
                    if move_to(home, member, self.of_threads).is_err() {
                        let _ = move_to(above, member, self.of_threads);
                    }
                }
                match fs::remove_dir(here) {
                    // Processes that are just ending are counted a little longer.
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(PAUSE),
                    _ => break,
                }
            }
        }
    }
}

const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);
