//! Finds the uplinks on which jobs may share links.

use std::collections::BTreeMap;

use topolane_fabric::{Fabric, GroupIndex};

use crate::obstacles::Holder;

/// A group whose uplinks a job may use, and the other jobs that may use the same links.
pub type Meeting = ((u8, GroupIndex), Vec<u64>);

/// The jobs that may use the uplinks of each group at one moment.
///
/// A job may use the uplinks of a group that it crosses. Two jobs that cross one group may share links, unless both own
/// links: owned links are never shared.
#[derive(Debug)]
pub struct LinkUse<'a> {
    fabric: &'a Fabric,
    jobs: &'a [Holder<'a>],
    /// By level and group: indices into `jobs`.
    users: BTreeMap<(u8, GroupIndex), Vec<usize>>,
}

impl<'a> LinkUse<'a> {
    /// Collects the link use of these jobs.
    pub fn of(fabric: &'a Fabric, jobs: &'a [Holder<'a>]) -> Self {
        let mut users: BTreeMap<(u8, GroupIndex), Vec<usize>> = BTreeMap::new();
        for (index, (_, placement)) in jobs.iter().enumerate() {
            for &group in placement.crossed() {
                users.entry(group).or_default().push(index);
            }
        }
        LinkUse { fabric, jobs, users }
    }

    /// For each job, the groups whose uplinks it may use, by level and index, and the other jobs that may use the same
    /// links.
    pub fn meetings(&self) -> Vec<Vec<Meeting>> {
        let mut found = vec![Vec::new(); self.jobs.len()];
        for (&group, users) in &self.users {
            for &user in users {
                let others = users.iter().filter(|&&other| other != user && self.meet(user, other));
                found[user].push((group, others.map(|&other| self.jobs[other].0).collect()));
            }
        }
        found
    }

    /// The number of uplinks that two or more jobs may use. WAN links, which lead out of sites, do not count.
    pub fn shared(&self) -> u32 {
        let met =
            |users: &Vec<usize>| users.len() > 1 && users.iter().any(|&user| !self.owns(user));
        let uplinks = self.users.iter().map(|(&(level, group), users)| {
            let counts = usize::from(level) < self.fabric.depth() && met(users);
            if counts { self.fabric.present_uplinks(usize::from(level), group) } else { 0 }
        });
        uplinks.sum()
    }

    fn owns(&self, job: usize) -> bool {
        !self.jobs[job].1.links().is_empty()
    }

    fn meet(&self, one: usize, other: usize) -> bool {
        !(self.owns(one) && self.owns(other))
    }
}
