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
    processes: PathBuf,
    threads: PathBuf,
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
        let fits = |at: usize| {
            let hierarchy = &hierarchies.all[at];
            (!of_threads || hierarchy.takes_threads()) && !slurms(&hierarchy.home(member))
        };
        let of = |at: Option<usize>| at.filter(|&at| fits(at)).map(|at| &hierarchies.all[at]);
        let mut places = Places { pairs: Vec::new(), of_threads };
        let usable = (0..hierarchies.all.len()).filter(|&at| fits(at));
        for hierarchy in usable.map(|at| &hierarchies.all[at]) {
            let directory = hierarchy.own.join(name);
            fs::create_dir(&directory)?;
            places.pairs.push((directory, hierarchy.home(member)));
        }
        let Some((first, _)) = places.pairs.first() else { return Ok(None) };
        let v2 = first.join("cgroup.threads").exists();
        let (processes, threads) =
            (first.join("cgroup.procs"), first.join(if v2 { "cgroup.threads" } else { "tasks" }));
        let open = |at: Option<usize>, file: &str| {
            let Some(hierarchy) = of(at) else { return Ok(None) };
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
        if let Some(cpu) = of(hierarchies.cpu) {
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
        members(&self.processes)
    }

    /// The threads in it.
    pub fn threads(&self) -> io::Result<Vec<Number>> {
        members(&self.threads)
    }

    /// Its directories.
    pub fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        self.places.pairs.iter().map(|(here, _)| here)
    }
}

/// Members a list of a group names. It is opened anew: version 1 shows who was there before for as long as one that stays
/// open is read more often than once a second (kernel/cgroup/cgroup-v1.c, `cgroup_pidlist_start`).
fn members(list: &Path) -> io::Result<Vec<Number>> {
    Ok(processes::read(&fs::read_to_string(list)?))
}

/// Whether a group is one that Slurm made for a step. By it Slurm suspends and ends the step (proctrack/cgroup), so
/// nobody is moved out of it.
fn slurms(group: &Path) -> bool {
    let names: Vec<_> = group.iter().filter_map(|name| name.to_str()).collect();
    names.windows(2).any(|pair| pair[0].starts_with("job_") && pair[1].starts_with("step_"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Slurm's groups of a step are known by their names in either version, and nobody else's are taken for them.
    #[test]
    fn a_group_of_slurms_is_told_by_its_name() {
        assert!(slurms(Path::new("/cg/freezer/slurm_node1/uid_0/job_4/step_batch")));
        assert!(slurms(Path::new("/cg/system.slice/slurmstepd.scope/job_4/step_0/user/task_0")));
        assert!(!slurms(Path::new("/cg/freezer")) && !slurms(Path::new("/cg/user/job_4/steps")));
    }
}
