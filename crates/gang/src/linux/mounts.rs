//! Finds where control groups are mounted, and the groups of this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The control group hierarchies: for each, the directories below which groups may be created, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts {
    /// Directories of version 2.
    pub unified: Vec<PathBuf>,
    /// Directories of the version 1 freezer.
    pub freezer: Vec<PathBuf>,
    /// Directories of the version 1 cpuset controller.
    pub cpuset: Vec<PathBuf>,
    /// Directories of the version 1 cpu controller.
    pub cpu: Vec<PathBuf>,
}

/// Returns the hierarchies of this machine.
pub fn mounts() -> Mounts {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
}

fn parse(mountinfo: &str, own: &str) -> Mounts {
    let mut mounts = Mounts::default();
    for line in mountinfo.lines() {
        let Some((mount, system)) = line.split_once(" - ") else { continue };
        let Some(point) = mount.split_ascii_whitespace().nth(4) else { continue };
        let mut system = system.split_ascii_whitespace();
        let kind = system.next();
        let options = system.nth(1).unwrap_or_default();
        let has = |controller: &str| options.split(',').any(|option| option == controller);
        let point = Path::new(point);
        match kind {
            Some("cgroup2") => mounts.unified.extend(places(point, own, "")),
            Some("cgroup") => {
                for (controller, of) in [
                    ("freezer", &mut mounts.freezer),
                    ("cpuset", &mut mounts.cpuset),
                    ("cpu", &mut mounts.cpu),
                ] {
                    if has(controller) {
                        of.extend(places(point, own, controller));
                    }
                }
            }
            _ => {}
        }
    }
    mounts
}

/// The top of a hierarchy and the group of this process, which may have been delegated to the user.
fn places(point: &Path, own: &str, controller: &str) -> Vec<PathBuf> {
    let mut places = vec![point.to_path_buf()];
    if let Some(mine) = path_in(own, controller).filter(|&mine| mine != "/") {
        places.push(point.join(mine.trim_start_matches('/')));
    }
    places
}

/// The path in the hierarchy of a controller (empty for version 2), from the text of /proc/PID/cgroup.
pub fn path_in<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        controllers.split(',').any(|one| one == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With both versions mounted, as on many machines, each hierarchy is recognised by its type, not by its path.
    #[test]
    fn hierarchies_are_found_by_their_kind() {
        let mountinfo = "30 20 0:26 / /groups/unified rw - cgroup2 cgroup2 rw\n\
            31 20 0:27 / /groups/cold rw,nosuid - cgroup cgroup rw,freezer\n\
            32 20 0:28 / /groups/both rw - cgroup cgroup rw,cpu,cpuacct\n\
            33 20 0:29 / /home rw - ext4 /dev/cpuset rw,cpuset\n";
        let own = "5:freezer:/\n4:cpu,cpuacct:/a/b\n0::/mine\n";
        let mounts = parse(mountinfo, own);
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(mounts.unified, paths(&["/groups/unified", "/groups/unified/mine"]));
        assert_eq!(mounts.freezer, paths(&["/groups/cold"]));
        assert_eq!(mounts.cpu, paths(&["/groups/both", "/groups/both/a/b"]));
        assert_eq!(mounts.cpuset, paths(&[]));
    }
}
