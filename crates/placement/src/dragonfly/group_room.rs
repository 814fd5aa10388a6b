//! What one group of a dragonfly can still give to a job.

use std::cmp::Reverse;

use topolane_fabric::{GroupIndex, NodeIndex, SwitchSet};

use super::Search;
use super::clique::{Conflicts, bits};

/// What a group has for a job that is also in certain other groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The index of the group among those with free slots.
    pub room: usize,
    /// The gateways to the other groups of the job.
    pub gates: SwitchSet,
    /// The routers that the job may have together.
    pub routers: SwitchSet,
    /// Their free slots.
    pub most: u32,
}

/// The free slots of a group, by router, and which routers a job may have together.
pub(super) struct GroupRoom<'a> {
    search: &'a Search<'a>,
    of_hierarchy: GroupIndex,
    group: u32,
    /// Free slots and leaf of each router that has any, by its place in the group.
    routers: Vec<(u32, u32, GroupIndex)>,
    /// For each router, the routers that a job cannot have, or reach, together with it. `None` if no link of the group
    /// matters.
    conflicts: Option<&'a Conflicts>,
}

impl<'a> GroupRoom<'a> {
    /// Counts the free slots of a group of level 2 of the hierarchy, and finds which of its routers conflict.
    pub fn new(search: &'a Search<'a>, of_hierarchy: GroupIndex) -> Self {
        let (free, dragonfly) = (search.free, search.dragonfly);
        let group = dragonfly.group_of_level_2(of_hierarchy);
        let router = |leaf| {
            let place = dragonfly.place_of(dragonfly.switch_of_leaf(leaf));
            (place, free.count(1, leaf), leaf)
        };
        let leaves = free.fabric().children(2, of_hierarchy);
        let mut routers = Vec::with_capacity(leaves.len());
        routers.extend(leaves.map(router).filter(|router| router.1 > 0));
        let conflicts = search.links.inside.conflicts_in(dragonfly, group);
        GroupRoom { search, of_hierarchy, group, routers, conflicts }
    }

    /// The number of the group in the dragonfly.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// The number of the group of level 2 of the hierarchy.
    pub fn of_hierarchy(&self) -> GroupIndex {
        self.of_hierarchy
    }

    /// The routers that a job cannot have together with this one, or with this one as a gateway.
    pub fn in_conflict(&self, router: usize) -> SwitchSet {
        self.conflicts.as_ref().map_or(0, |conflicts| conflicts.of_switch(router))
    }

    /// The free slots on these routers.
    pub fn slots_on(&self, routers: SwitchSet) -> u32 {
        self.routers_of(routers).map(|router| router.1).sum()
    }

    /// What the group, which is the `room`-th, has for a job that also uses these gateways.
    pub fn part(&self, room: usize, gates: SwitchSet) -> Part {
        let routers = self.together(gates);
        let most = self.slots_on(routers);
        Part { room, gates, routers, most }
    }

    /// The leaves of the routers of a part that have free slots.
    pub fn leaves_of(&self, part: &Part) -> impl Iterator<Item = GroupIndex> + use<'_> {
        self.routers_of(part.routers).map(|&(.., leaf)| leaf)
    }

    /// Those routers of a set that have free slots.
    fn routers_of(
        &self,
        set: SwitchSet,
    ) -> impl Iterator<Item = &(u32, u32, GroupIndex)> + use<'_, 'a> {
        self.routers.iter().filter(move |router| set >> router.0 & 1 == 1)
    }

    /// How many gateways of the part another job could get, or has, if this one takes `wanted` slots. Its traffic
    /// arrives there, so the traffic of the other must not leave over gateways on routers of this job.
    pub fn exposed(&self, part: &Part, wanted: u32) -> u32 {
        let own = || self.routers_of(part.gates & part.routers).map(|router| router.1);
        let mut taken = own().count();
        if own().sum::<u32>() > wanted {
            // Gateways are taken first, those with most slots before others.
            let mut counts: Vec<u32> = own().collect();
            counts.sort_unstable_by_key(|&count| Reverse(count));
            let filled = counts.iter().scan(0, |slots, count| {
                *slots += count;
                Some(*slots)
            });
            taken = filled.take_while(|&slots| slots < wanted).count() + usize::from(wanted > 0);
        }
        part.gates.count_ones() - taken as u32
    }

    /// Takes up to `wanted` slots of a part.
    pub fn take(&self, part: &Part, wanted: u32, nodes: &mut Vec<NodeIndex>) {
        let mut routers: Vec<_> = self.in_order(part).collect();
        let mut left = wanted;
        while left > 0 && !routers.is_empty() {
            // The fullest router that suffices comes last.
            let last = routers.iter().enumerate().filter(|(_, router)| router.1 >= left);
            let last = last.min_by_key(|(_, router)| router.1).map(|(index, _)| index);
            let (_, _, leaf) = routers.remove(last.unwrap_or(0));
            left -= self.search.free.take(1, *leaf, left, nodes);
        }
    }

    /// The routers of a part: gateways first, because then no other job can be where its traffic arrives; of the others
    /// the emptiest first.
    fn in_order(&self, part: &Part) -> impl Iterator<Item = &(u32, u32, GroupIndex)> + use<'_, 'a> {
        let is_gate = |place: u32| part.gates >> place & 1 == 1;
        let mut routers: Vec<_> = self.routers_of(part.routers).collect();
        routers.sort_by_key(|&&(place, count, _)| (!is_gate(place), Reverse(count), place));
        routers.into_iter()
    }

    /// Routers that a job may have together, if it also uses these gateways, with as many slots as possible.
    fn together(&self, gates: SwitchSet) -> SwitchSet {
        let able = self
            .routers
            .iter()
            .filter(|&&(place, ..)| self.in_conflict(place as usize) & gates == 0);
        let able = able.fold(0, |set, &(place, ..)| set | 1 << place);
        let Some(conflicts) = self.conflicts else { return able };
        let mut weights = [0; SwitchSet::BITS as usize];
        self.routers.iter().for_each(|&(place, count, _)| weights[place as usize] = count);
        debug_assert!(bits(able).all(|place| weights[place] > 0), "routers have slots");
        let (routers, is_exact) = conflicts.heaviest(able, &weights);
        if !is_exact {
            self.search.is_exact.set(false);
        }
        routers
    }
}
