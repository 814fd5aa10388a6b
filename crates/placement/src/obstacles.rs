//! The groups that keep a refused request from being placed.

use std::collections::BTreeSet;

use topolane_fabric::{CableId, Fabric, GroupIndex, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::request::Request;

/// A running job: its id and its placement.
pub type Holder<'a> = (u64, &'a Placement);

/// A group that keeps a request from being placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The level of the group; leaves are level 1.
    pub level: usize,
    /// The index of the group in its level.
    pub group: GroupIndex,
    /// The name of the group.
    pub name: String,
    /// Slots in the group that the request could use if it needed only slots.
    pub free: u32,
    /// What the request lacks there.
    pub missing: Missing,
    /// The jobs that hold what is missing, by id, ascending.
    pub jobs: Vec<u64>,
}

/// What a request lacks in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// This number of slots.
    Slots(u32),
    /// Some uplinks of the group (of a site: its WAN links), because other jobs may use them or they are out of
    /// service.
    Uplinks {
        /// The number of uplinks that the request cannot have.
        missing: u32,
        /// The number of uplinks of the group.
        of: u32,
    },
}

/// The name of a kind of group: `leaf`, `pod`, `level-3 group` or `site`.
pub fn kind_of_group(fabric: &Fabric, level: usize) -> String {
    match level {
        level if level == fabric.depth() => "site".to_owned(),
        1 => "leaf".to_owned(),
        2 => "pod".to_owned(),
        level => format!("level-{level} group"),
    }
}

/// A refused request and the state in which to look for obstacles.
#[derive(Debug, Clone, Copy)]
pub struct Looking<'a> {
    /// The request.
    pub request: &'a Request,
    /// The state in which the request was refused.
    pub occupancy: &'a Occupancy,
    /// The free slots for the request.
    pub free: &'a FreeSlots<'a>,
    /// The running jobs.
    pub jobs: &'a [Holder<'a>],
}

impl Looking<'_> {
    /// The obstacles if the machine has too few free slots: the sites, and the jobs on nodes that the request may use.
    pub(crate) fn held_slots(&self, missing: u32) -> Vec<Obstacle> {
        let top = self.occupancy.fabric().depth();
        let sites = 0..self.occupancy.fabric().sites();
        in_order(sites.map(|site| self.too_few(top, site, missing)).collect())
    }

    /// The obstacles for a request that must lie in one group of `level` and may cross no group that another job
    /// crosses (with `any` false: no group that a job with links of its own crosses). Returns the highest crossed
    /// groups with free slots, inside groups with enough slots; if no site has enough, in all sites. If there are no
    /// such groups, returns the group with most slots.
    pub fn crossed(&self, level: usize, any: bool) -> Vec<Obstacle> {
        let (wanted, groups) = (self.request.nodes, 0..self.occupancy.fabric().groups(level));
        let count = |&group: &GroupIndex| self.free.count(level, group);
        let Some(best) = groups.clone().rev().max_by_key(count) else { return Vec::new() };
        let mut found = Vec::new();
        if count(&best) >= wanted {
            for group in groups.filter(|group| count(group) >= wanted) {
                self.crossed_below(level, group, any, &mut found);
            }
            return in_order(found);
        }
        if level == self.occupancy.fabric().depth() {
            // No site has enough slots, so the request would need several sites.
            groups.for_each(|site| self.crossed_at(level, site, any, &mut found));
        }
        if found.is_empty() {
            found.push(self.too_few(level, best, wanted - count(&best)));
        }
        in_order(found)
    }

    /// Appends the highest crossed groups with free slots among this group and those inside it.
    fn crossed_at(&self, level: usize, group: GroupIndex, any: bool, found: &mut Vec<Obstacle>) {
        if self.free.count(level, group) == 0 {
            return;
        }
        let crossing = if any {
            self.occupancy.crossing(level, group)
        } else {
            self.occupancy.isolated_crossing(level, group)
        };
        if crossing == 0 {
            return self.crossed_below(level, group, any, found);
        }
        let of = links_out(self.occupancy.fabric(), level, group);
        let crosses = |placement: &Placement| {
            (any || placement.is_isolated()) && placement.crossed().contains(&(level as u8, group))
        };
        let missing = Missing::Uplinks { missing: of, of };
        found.push(self.obstacle(level, group, missing, crosses));
    }

    fn crossed_below(&self, level: usize, group: GroupIndex, any: bool, found: &mut Vec<Obstacle>) {
        if level > 1 {
            for child in self.occupancy.fabric().children(level, group) {
                self.crossed_at(level - 1, child, any, found);
            }
        }
    }

    /// The obstacles for a job that must own its links: each leaf with free slots and the number of uplinks that the
    /// job cannot have. Above the leaves, only groups where some uplinks are missing are listed.
    pub fn dedicated_uplinks(&self) -> Vec<Obstacle> {
        let fabric = self.occupancy.fabric();
        let groups = (1..fabric.depth())
            .flat_map(|level| (0..fabric.groups(level)).map(move |group| (level, group)))
            .filter(|&(level, group)| self.free.count(level, group) > 0);
        let found = groups.filter_map(|(level, group)| {
            let of = fabric.present_uplinks(level, group);
            let missing = self.missing_uplinks(level, group, of);
            let uses = |placement: &Placement| uses_uplinks(fabric, placement, level, group);
            let is_listed = of > 0 && (level == 1 || missing > 0);
            is_listed.then(|| self.obstacle(level, group, Missing::Uplinks { missing, of }, uses))
        });
        in_order(found.collect())
    }

    /// The number of a group's `of` uplinks that the request cannot have: those that jobs own or that are out of
    /// service. All of them if a job without links of its own crosses the group.
    fn missing_uplinks(&self, level: usize, group: GroupIndex, of: u32) -> u32 {
        let crosses = |placement: &Placement| placement.crossed().contains(&(level as u8, group));
        if self.jobs.iter().any(|(_, one)| one.links().is_empty() && crosses(one)) {
            return of;
        }
        let uplinks = self.occupancy.fabric().uplinks(level, group);
        let owned = self.jobs.iter().flat_map(|(_, placement)| placement.links()).copied();
        let gone = owned.chain(self.occupancy.links_out());
        gone.filter(|cable| uplinks.contains(cable)).collect::<BTreeSet<CableId>>().len() as u32
    }

    /// The obstacles if there are enough free slots and links, but not in the right places: the leaves where jobs hold
    /// slots.
    pub(crate) fn held_slots_of_leaves(&self) -> Vec<Obstacle> {
        let leaves = 0..self.occupancy.fabric().groups(1);
        let found = leaves.map(|leaf| {
            let range = self.occupancy.fabric().node_range(1, leaf);
            let held = range.filter(|&node| self.may_use(node) && self.occupancy.held(node) > 0);
            self.too_few(1, leaf, held.count() as u32)
        });
        in_order(found.filter(|obstacle| !obstacle.jobs.is_empty()).collect())
    }

    fn may_use(&self, node: NodeIndex) -> bool {
        self.request.eligible.as_ref().is_none_or(|set| set.contains(node))
    }

    fn too_few(&self, level: usize, group: GroupIndex, missing: u32) -> Obstacle {
        let range = self.occupancy.fabric().node_range(level, group);
        let holds = |placement: &Placement| {
            placement.held().any(|node| range.contains(&node) && self.may_use(node))
        };
        self.obstacle(level, group, Missing::Slots(missing), holds)
    }

    fn obstacle(
        &self,
        level: usize,
        group: GroupIndex,
        missing: Missing,
        holds: impl Fn(&Placement) -> bool,
    ) -> Obstacle {
        let mut jobs: Vec<u64> =
            self.jobs.iter().filter(|(_, placement)| holds(placement)).map(|&(id, _)| id).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let name = self.occupancy.fabric().group_name(level, group).to_owned();
        Obstacle { level, group, name, free: self.free.count(level, group), missing, jobs }
    }
}

/// The number of links out of a group: its uplinks; for a site, its WAN links.
fn links_out(fabric: &Fabric, level: usize, group: GroupIndex) -> u32 {
    if level < fabric.depth() {
        return fabric.present_uplinks(level, group);
    }
    fabric.wans().filter(|(_, (a, b), ..)| *a == group || *b == group).count() as u32
}

/// Sorts obstacles by free slots, most first.
fn in_order(mut obstacles: Vec<Obstacle>) -> Vec<Obstacle> {
    obstacles.sort_by_key(|obstacle| std::cmp::Reverse(obstacle.free));
    obstacles
}

/// Whether a placement owns an uplink of a group, or owns no links and may use any.
fn uses_uplinks(fabric: &Fabric, placement: &Placement, level: usize, group: GroupIndex) -> bool {
    let uplinks = fabric.uplinks(level, group);
    if placement.links().is_empty() {
        placement.crossed().contains(&(level as u8, group))
    } else {
        placement.links().iter().any(|cable| uplinks.contains(cable))
    }
}
