//! The control groups of a job.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use super::control::OwnGroup;
use super::files;
use super::hierarchy::{Hierarchies, inherit, share};
use super::processes::{self, Number};

/// The control groups of a job in the hierarchies, with the files needed for a switch kept open. When it is dropped,
/// members go back to where the job came from, and the groups are removed.
#[derive(Debug)]
pub struct ControlGroup {
    places: GroupPlaces,
    /// Directories whose members, including those of all directories below, are the job.
    held: Vec<PathBuf>,
    /// Open `cgroup.freeze` files.
    pub freeze: Vec<File>,
    /// Open `freezer.state` files.
    pub freezer: Vec<File>,
    /// The open `cpuset.cpus` file.
    pub cpus: Option<File>,
    /// The open `cpu.idle` file.
    pub idle: Option<File>,
}

/// For each hierarchy, the group and the place where members go when it is removed.
#[derive(Debug)]
struct GroupPlaces {
    pairs: Vec<(PathBuf, PathBuf)>,
    of_threads: bool,
}

impl ControlGroup {
    /// Creates the groups of a job whose first member is `member`. For single threads, only where threads can be moved.
    /// `None` if there is no suitable hierarchy.
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
        let mut places = GroupPlaces { pairs: Vec::new(), of_threads };
        let usable = (0..hierarchies.all.len()).filter(|&at| fits(at));
        for hierarchy in usable.map(|at| &hierarchies.all[at]) {
            let directory = hierarchy.own.join(name);
            fs::create_dir(&directory)?;
            places.pairs.push((directory, hierarchy.home(member)));
        }
        let Some((first, _)) = places.pairs.first() else { return Ok(None) };
        let open = |at: Option<usize>, file: &str| {
            let Some(hierarchy) = of(at) else { return Ok(None) };
            files::to_write(&hierarchy.own.join(name).join(file)).map(Some)
        };
        let group = ControlGroup {
            held: vec![first.clone()],
            freeze: open(hierarchies.unified, "cgroup.freeze")?.into_iter().collect(),
            freezer: open(hierarchies.freezer, "freezer.state")?.into_iter().collect(),
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

    /// Uses groups that exist already, all of one cgroup version. `Err` is a sentence.
    pub fn adopt(groups: &[OwnGroup]) -> Result<Self, String> {
        let v2 = groups.iter().any(|group| group.directory.join("cgroup.freeze").exists());
        let (switch, frozen) = if v2 {
            ("cgroup.freeze", "cgroup.freeze")
        } else {
            ("freezer.state", "freezer.self_freezing")
        };
        let open = |group: &OwnGroup| -> Result<File, String> {
            let named = group.directory.display();
            let failed = |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound => format!("{named} is no control group that freezes"),
                io::ErrorKind::PermissionDenied => format!("{named}: no permission to freeze it"),
                _ => format!("{named}: {error}"),
            };
            let state = fs::read_to_string(group.directory.join(frozen)).map_err(failed)?;
            if state.trim() != "0" {
                return Err(format!("{named} is frozen already, not by this agent"));
            }
            files::to_write(&group.directory.join(switch)).map_err(failed)
        };
        let files = groups.iter().map(open).collect::<Result<Vec<File>, String>>()?;
        let (freeze, freezer) = if v2 { (files, Vec::new()) } else { (Vec::new(), files) };
        let made = groups.iter().filter(|group| group.made);
        let above = |group: &OwnGroup| group.directory.parent().map(Path::to_path_buf);
        let pairs = made.filter_map(|group| Some((group.directory.clone(), above(group)?)));
        Ok(ControlGroup {
            places: GroupPlaces { pairs: pairs.collect(), of_threads: true },
            held: groups.iter().map(|group| group.directory.clone()).collect(),
            freeze,
            freezer,
            cpus: None,
            idle: None,
        })
    }

    /// Moves a process, or a single thread, into the group.
    pub fn take(&self, member: Number) -> io::Result<()> {
        let GroupPlaces { pairs, of_threads } = &self.places;
        pairs.iter().try_for_each(|(here, _)| move_to(here, member, *of_threads))
    }

    /// The processes in the group.
    pub fn processes(&self) -> io::Result<Vec<Number>> {
        self.members(|_| "cgroup.procs")
    }

    /// The threads in the group.
    pub fn threads(&self) -> io::Result<Vec<Number>> {
        self.members(thread_list)
    }

    fn members(&self, list: impl Fn(&Path) -> &'static str) -> io::Result<Vec<Number>> {
        let mut found = Vec::new();
        for held in &self.held {
            found.extend(members(&held.join(list(held)))?);
            below(held, &mut |group| {
                // The group may have been removed meanwhile.
                found.extend(members(&group.join(list(group))).unwrap_or_default());
            });
        }
        Ok(found)
    }
}

/// The name of the file that lists the threads of a group.
fn thread_list(group: &Path) -> &'static str {
    if group.join("cgroup.threads").exists() { "cgroup.threads" } else { "tasks" }
}

/// Calls `each` for every group below one.
fn below(group: &Path, each: &mut impl FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(group) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            each(&entry.path());
            below(&entry.path(), each);
        }
    }
}

/// The members in a list of a group. The file is opened on each call: if it stayed open and were read more often than
/// once a second, version 1 would show old members (kernel/cgroup/cgroup-v1.c, `cgroup_pidlist_start`).
fn members(list: &Path) -> io::Result<Vec<Number>> {
    Ok(processes::read(&fs::read_to_string(list)?))
}

/// Whether Slurm made this group for a step. Slurm suspends and ends the step through it (proctrack/cgroup), so no
/// process may be moved out of it.
fn slurms(group: &Path) -> bool {
    let names: Vec<_> = group.iter().filter_map(|name| name.to_str()).collect();
    names.windows(2).any(|pair| pair[0].starts_with("job_") && pair[1].starts_with("step_"))
}

fn move_to(directory: &Path, member: Number, thread: bool) -> io::Result<()> {
    let file = if thread { thread_list(directory) } else { "cgroup.procs" };
    fs::write(directory.join(file), member.to_string())
}

impl Drop for GroupPlaces {
    fn drop(&mut self) {
        for (here, home) in &self.pairs {
            for _ in 0..TRIES {
                let listed = if self.of_threads { thread_list(here) } else { "cgroup.procs" };
                let members = fs::read_to_string(here.join(listed)).unwrap_or_default();
                let above = here.ancestors().nth(2).unwrap_or(here);
                for member in processes::read(&members) {
                    // The member may have ended, or its former group may be gone.
                    if move_to(home, member, self.of_threads).is_err() {
                        let _ = move_to(above, member, self.of_threads);
                    }
                }
                match fs::remove_dir(here) {
                    // Processes that are ending are still counted for a moment.
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

    /// Slurm's groups of a step are recognised by name in both versions, and no other groups are.
    #[test]
    fn a_group_of_slurms_is_known_by_its_name() {
        assert!(slurms(Path::new("/cg/freezer/slurm_node1/uid_0/job_4/step_batch")));
        assert!(slurms(Path::new("/cg/system.slice/slurmstepd.scope/job_4/step_0/user/task_0")));
        assert!(!slurms(Path::new("/cg/freezer")) && !slurms(Path::new("/cg/user/job_4/steps")));
    }
}
