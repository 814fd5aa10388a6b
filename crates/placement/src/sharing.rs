//! Finds the uplinks on which jobs may share links.

use std::collections::{BTreeMap, BTreeSet};

use topolane_fabric::{Fabric, GroupIndex, LinkSet};

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
    ///
    /// On a dragonfly, two jobs that share links meet in the group of level 2 that both have nodes in, or in the whole
    /// machine if there is none.
    pub fn meetings(&self) -> Vec<Vec<Meeting>> {
        let mut found = vec![Vec::new(); self.jobs.len()];
        if !self.fabric.wiring().is_tree() {
            for (one, found) in found.iter_mut().enumerate() {
                *found = self.meetings_of(one);
            }
            return found;
        }
        for (&group, users) in &self.users {
            for &user in users {
                let others = users.iter().filter(|&&other| other != user && self.meet(user, other));
                found[user].push((group, others.map(|&other| self.jobs[other].0).collect()));
            }
        }
        found
    }

    /// The number of uplinks that two or more jobs may use; on a dragonfly, of cables, for each direction. WAN links, which
    /// lead out of sites, do not count.
    pub fn shared(&self) -> u32 {
        if !self.fabric.wiring().is_tree() {
            let uses = self.jobs.iter().map(|(_, placement)| placement.uses());
            return self.fabric.cables_in(&LinkSet::in_several(uses, self.fabric.link_words()));
        }
        let met =
            |users: &Vec<usize>| users.len() > 1 && users.iter().any(|&user| !self.owns(user));
        let uplinks = self.users.iter().map(|(&(level, group), users)| {
            let counts = usize::from(level) < self.fabric.depth() && met(users);
            if counts { self.fabric.present_uplinks(usize::from(level), group) } else { 0 }
        });
        uplinks.sum()
    }

    /// The meetings of a job on a wiring that is not a tree.
    fn meetings_of(&self, one: usize) -> Vec<Meeting> {
        let top = (self.fabric.depth() as u8, 0);
        let mut met: BTreeMap<(u8, GroupIndex), Vec<u64>> = BTreeMap::new();
        for (other, (id, placement)) in self.jobs.iter().enumerate() {
            if other != one && !self.jobs[one].1.uses().and(placement.uses()).is_empty() {
                let groups = |job: usize| {
                    let nodes = self.jobs[job].1.nodes().iter();
                    nodes.map(|&node| self.fabric.group(2, node)).collect::<BTreeSet<_>>()
                };
                let both = groups(one).intersection(&groups(other)).next().map(|&group| (2, group));
                met.entry(both.unwrap_or(top)).or_default().push(*id);
            }
        }
        met.into_iter().collect()
    }

    fn owns(&self, job: usize) -> bool {
        !self.jobs[job].1.links().is_empty()
    }

    fn meet(&self, one: usize, other: usize) -> bool {
        !(self.owns(one) && self.owns(other))
    }
}
