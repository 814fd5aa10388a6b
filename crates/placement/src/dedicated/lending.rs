//! Lends idle links to jobs that have less bandwidth than they could use.

use std::collections::BTreeMap;
use std::sync::Arc;

use topolane_fabric::{CableId, Fabric, GroupIndex};

use crate::dedicated::condition::need::Need;
use crate::dedicated::search::slot_sets::lowest;
use crate::dedicated::uplink_slots::UplinkSlots;
use crate::{Occupancy, Placement};

/// Links lent to a running job until another job needs them. Only routing changes, not the placement.
#[derive(Debug, Clone, PartialEq)]
pub struct Lent {
    /// The job.
    pub id: u64,
    /// The share of full bandwidth that the job has with these links.
    pub bandwidth_share: f64,
    /// The links, ascending.
    pub links: Vec<CableId>,
}

/// Lends free links to jobs that have less than full bandwidth; jobs with the smallest share come first. It lends whole
/// planes: every leaf of the job must have a free slot in the plane, and every pod the same number of links to the core
/// as in the planes the job owns.
pub fn lend<'a>(
    occupancy: &Occupancy,
    running: impl Iterator<Item = (u64, &'a Arc<Placement>)>,
) -> Vec<Lent> {
    if !occupancy.slots().any_taken() {
        return Vec::new(); // under most policies: no need to look at the jobs
    }
    let mut wanting: Vec<(u64, &Placement)> = running
        .filter(|(_, placement)| !placement.links().is_empty() && placement.bandwidth_share() < 1.0)
        .map(|(id, placement)| (id, &**placement))
        .collect();
    if wanting.is_empty() {
        return Vec::new(); // after most events: a copy of all slots is the dear part
    }
    wanting.sort_by(|one, other| {
        one.1.bandwidth_share().total_cmp(&other.1.bandwidth_share()).then(one.0.cmp(&other.0))
    });
    let mut free = occupancy.slots().clone();
    wanting
        .into_iter()
        .map(|(id, placement)| lend_to(id, placement, occupancy, &mut free))
        .collect()
}

fn lend_to(id: u64, placement: &Placement, occupancy: &Occupancy, free: &mut UplinkSlots) -> Lent {
    let owner = LinkOwner::of(placement, occupancy);
    let mut planes = owner.planes(free);
    planes.truncate(owner.wanting as usize);
    let mut links = Vec::new();
    let mut to_rest = 0;
    for &(slot, core, is_rest) in &planes {
        let from = links.len();
        let is_rest = is_rest && owner.rest_slots + to_rest < owner.rest_full;
        to_rest += u32::from(is_rest);
        for &leaf in owner.leaves.iter().chain(owner.rest.iter().filter(|_| is_rest)) {
            free.cables((1, leaf, 0), 1 << slot, &mut links);
        }
        for &pod in &owner.pods {
            free.cables((2, pod, slot / owner.parallel), core, &mut links);
        }
        free.take(&links[from..]);
    }
    links.sort_unstable();
    let share = |slots: u32, full: u32| f64::from(slots) / f64::from(full.max(1));
    let bandwidth_share = share(owner.slots + planes.len() as u32, owner.slots + owner.wanting);
    let of_rest = if owner.rest.is_empty() {
        1.0
    } else {
        share(owner.rest_slots + to_rest, owner.rest_full)
    };
    let slots = owner.slots + planes.len() as u32;
    let above =
        owner.core_share(slots).unwrap_or(placement.bandwidth_share() * share(slots, owner.slots));
    Lent {
        id,
        bandwidth_share: bandwidth_share
            .min(of_rest)
            .min(above)
            .clamp(placement.bandwidth_share(), 1.0),
        links,
    }
}

/// What a job owns, as far as it decides which further links the job could use.
#[derive(Default)]
struct LinkOwner {
    /// Leaves that own all planes of the job.
    leaves: Vec<GroupIndex>,
    /// Leaves of the remainder: they own only some of the planes.
    rest: Vec<GroupIndex>,
    /// The pods of a job that spans several; empty otherwise.
    pods: Vec<GroupIndex>,
    /// Uplink slots that each leaf owns.
    slots: u32,
    /// Uplink slots that each leaf of the remainder owns, and the number that it could use.
    rest_slots: u32,
    rest_full: u32,
    /// Links to the core in each plane.
    core: u32,
    /// For each pod, the nodes of the job and its fewest links to the core in a plane that it owns.
    in_pods: Vec<(u32, u32)>,
    need: Option<Need>,
    /// Whether these links are enough for all slots that the leaves own.
    core_by_leaves: bool,
    /// Further uplink slots that the leaves could use.
    wanting: u32,
    /// Parallel cables from a leaf to each switch above.
    parallel: u32,
}

impl LinkOwner {
    fn of(placement: &Placement, occupancy: &Occupancy) -> Self {
        let fabric = occupancy.fabric();
        let mut nodes: BTreeMap<GroupIndex, u32> = BTreeMap::new();
        for &node in placement.nodes() {
            *nodes.entry(fabric.group(1, node)).or_default() += 1;
        }
        let mut slots: BTreeMap<GroupIndex, u32> = BTreeMap::new();
        let mut core: BTreeMap<(GroupIndex, u32), u32> = BTreeMap::new();
        let site = placement.nodes().first().map_or(0, |&node| fabric.site_of_group(0, node));
        let planes = if fabric.depth() > 2 { fabric.rail_width(site, 2) } else { 0 };
        for &link in placement.links() {
            // The job owns the same cables in every rail, so count the first rail only.
            match fabric.cable_place(link) {
                Some((1, leaf, 0, ..)) => *slots.entry(leaf).or_default() += 1,
                Some((2, pod, plane, ..)) if plane < planes => {
                    *core.entry((pod, plane)).or_default() += 1;
                }
                _ => {}
            }
        }
        let need = Need::new(fabric, placement.nodes().len() as u32, 1.0);
        let mut owner = LinkOwner { parallel: 1, core_by_leaves: true, ..LinkOwner::default() };
        owner.slots = slots.values().copied().max().unwrap_or(0);
        owner.core = core.values().copied().max().unwrap_or(0);
        owner.pods = core.keys().map(|&(pod, _)| pod).collect();
        owner.pods.dedup();
        let (mut full, mut of_rest) = (0, 0);
        for (&leaf, &count) in &nodes {
            let own = slots.get(&leaf).copied().unwrap_or(0);
            if own == owner.slots {
                owner.parallel = fabric.cabling(fabric.site_of_group(1, leaf), 1).cables;
                owner.leaves.push(leaf);
                full = full.max(need.slots(count));
            } else {
                owner.rest.push(leaf);
                owner.rest_slots = own;
                of_rest += count;
            }
        }
        owner.rest_full = need.remainder(of_rest);
        owner.wanting = full.saturating_sub(owner.slots);
        owner.count_pods(fabric, &nodes, &core, need);
        owner
    }

    fn count_pods(
        &mut self,
        fabric: &Fabric,
        nodes: &BTreeMap<GroupIndex, u32>,
        core: &BTreeMap<(GroupIndex, u32), u32>,
        need: Need,
    ) {
        let of_pod =
            |pod: GroupIndex| nodes.iter().filter(move |leaf| fabric.parent(1, *leaf.0) == pod);
        let links =
            |pod: GroupIndex| core.range((pod, 0)..=(pod, u32::MAX)).map(|(_, &links)| links).min();
        let leaves: Vec<u32> = self.pods.iter().map(|&pod| of_pod(pod).count() as u32).collect();
        let all: u32 = leaves.iter().sum();
        for (&pod, &own) in self.pods.iter().zip(&leaves) {
            let links = links(pod).unwrap_or(0);
            self.core_by_leaves &= links >= need.links(own.min(all - own));
            self.in_pods.push((of_pod(pod).map(|(_, count)| count).sum(), links));
        }
        self.need = Some(need);
    }

    /// The share of bandwidth that the job's links to the core allow with `slots` slots; `None` if it is only known to
    /// grow with the slots.
    fn core_share(&self, slots: u32) -> Option<f64> {
        if self.pods.is_empty() || self.core_by_leaves {
            return Some(1.0);
        }
        let need = self.need.filter(|_| self.rest.is_empty() && self.parallel == 1)?;
        let share = |&(nodes, links): &(u32, u32)| need.share_of_pod(nodes, links, slots);
        self.in_pods.iter().map(share).min_by(f64::total_cmp)
    }

    /// The free planes of the job: uplink slots that every leaf has free, with links to the core in every pod, and
    /// whether the remainder has them free too. Those that the remainder has come first.
    fn planes(&self, free: &UplinkSlots) -> Vec<(u32, u64, bool)> {
        let common = |leaves: &[GroupIndex]| {
            leaves.iter().fold(!0u64, |common, &leaf| common & free.free(1, leaf, 0))
        };
        let (all, rest) = (common(&self.leaves), common(&self.rest));
        let able = (0..u64::BITS).filter(|slot| all >> slot & 1 == 1);
        let planes = able.filter_map(|slot| {
            let plane = slot / self.parallel;
            let of_pod = |common: u64, &pod: &GroupIndex| common & free.free(2, pod, plane);
            let core = self.pods.iter().fold(!0, of_pod);
            let enough = core.count_ones() >= self.core;
            enough.then(|| (slot, lowest(core, self.core), rest >> slot & 1 == 1))
        });
        let mut planes: Vec<(u32, u64, bool)> = planes.collect();
        planes.sort_by_key(|&(slot, _, is_rest)| (!is_rest, slot));
        planes
    }
}
