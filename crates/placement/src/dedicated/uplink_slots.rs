//! Tracks which uplinks of leaves and second-level switches are free.

use std::sync::Arc;

use topolane_fabric::{CableId, Fabric, GroupIndex, NodeSet};

/// The most uplinks of one switch: they must fit in one word.
pub(crate) const MOST_UPLINKS: u32 = u64::BITS;

/// The free slots of every switch below the top of the tree.
///
/// Bit `a * cables + j` of a switch is set if more than `j` of its parallel cables to parent `a` are free. Parallel
/// cables are interchangeable, so the intersection of two switches' slots is what they have in common. A switch with
/// more than 64 uplinks, or shared by several rails, has no slots.
///
/// A slot covers all rails: switch `n` of a group stands for switch `n` of every rail. It is free if it is free in all
/// of them, and it consists of one cable in each. docs/explanation/dedicated-links.md says what that costs.
#[derive(Debug)]
pub(crate) struct UplinkSlots {
    plan: Arc<UplinkLayout>,
    /// All cables that jobs own.
    taken: NodeSet,
    /// The number of cables that jobs own.
    taken_count: u32,
    /// Cables that have failed.
    failed: NodeSet,
    /// Cables that are present, in service and not owned.
    idle: NodeSet,
    /// Free slots of every switch. With rails: what the switches of that number have free in all rails.
    free: Vec<u64>,
    /// Free slots of every switch in its own rail; empty on machines without rails.
    own: Vec<u64>,
    /// For each switch, the placements that cross its group without owning links; they may use any uplink.
    strangers: Vec<u32>,
}

/// The part that never changes.
#[derive(Debug)]
struct UplinkLayout {
    /// By level from 1: for each group, the number of switches in the groups before it.
    first_switch: Vec<Vec<u32>>,
    switches: Vec<SlotSwitch>,
    /// The switch below each cable; `None` for the cable of a node.
    of_cable: Vec<Option<u32>>,
    /// Cables that the machine does not have.
    missing: NodeSet,
}

#[derive(Debug, Clone, Copy)]
struct SlotSwitch {
    first: CableId,
    parents: u32,
    /// Parallel cables to each parent.
    cables: u32,
    /// Whether jobs can own its uplinks.
    has_slots: bool,
    /// The switches of the same number in all rails: the first, their count, and the distance between their numbers.
    rails: Rails,
}

#[derive(Debug, Clone, Copy)]
struct Rails {
    first: u32,
    count: u32,
    apart: u32,
}

impl Rails {
    fn switches(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |rail| self.first + rail * self.apart)
    }
}

impl Clone for UplinkSlots {
    fn clone(&self) -> Self {
        UplinkSlots {
            plan: Arc::clone(&self.plan),
            taken: self.taken.clone(),
            taken_count: self.taken_count,
            failed: self.failed.clone(),
            idle: self.idle.clone(),
            free: self.free.clone(),
            own: self.own.clone(),
            strangers: self.strangers.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        let UplinkSlots { plan, taken, taken_count, failed, idle, free, own, strangers } = source;
        self.plan.clone_from(plan);
        self.taken.clone_from(taken);
        self.taken_count = *taken_count;
        self.failed.clone_from(failed);
        self.idle.clone_from(idle);
        self.free.clone_from(free);
        self.own.clone_from(own);
        self.strangers.clone_from(strangers);
    }
}

impl UplinkLayout {
    fn of(fabric: &Fabric) -> Self {
        let mut plan = UplinkLayout {
            first_switch: vec![Vec::new()],
            switches: Vec::new(),
            of_cable: vec![None; fabric.links() as usize],
            missing: NodeSet::of(fabric.links(), fabric.missing_cables().iter().copied()),
        };
        for level in 1..fabric.depth() {
            let mut firsts = Vec::with_capacity(fabric.groups(level) as usize);
            for group in 0..fabric.groups(level) {
                firsts.push(plan.switches.len() as u32);
                plan.add_group(fabric, level, group);
            }
            plan.first_switch.push(firsts);
        }
        plan
    }

    fn add_group(&mut self, fabric: &Fabric, level: usize, group: GroupIndex) {
        let uplinks = fabric.uplinks(level, group);
        let site = fabric.site_of_group(level, group);
        let cabling = fabric.cabling(site, level);
        let ports = if uplinks.is_empty() { 0 } else { cabling.parents * cabling.cables };
        let (apart, count) = (fabric.rail_width(site, level), fabric.rails_at(site, level));
        let has_slots = count == fabric.rails(site) && ports <= MOST_UPLINKS;
        let first_switch = self.switches.len() as u32;
        for switch in 0..fabric.width(site, level) {
            let number = first_switch + switch;
            let rails = Rails { first: first_switch + switch % apart, count, apart };
            let first = uplinks.start + switch * ports;
            let parents = ports / cabling.cables.max(1);
            self.switches.push(SlotSwitch {
                first,
                parents,
                cables: cabling.cables,
                has_slots,
                rails,
            });
            for port in 0..ports {
                self.of_cable[(first + port) as usize] = Some(number);
            }
        }
    }

    fn switch_of(&self, cable: CableId) -> Option<u32> {
        self.of_cable.get(cable as usize).copied().flatten()
    }
}

impl UplinkSlots {
    pub fn new(fabric: &Fabric) -> Self {
        let plan = Arc::new(UplinkLayout::of(fabric));
        let switches = plan.switches.len();
        let has_rails = plan.switches.iter().any(|switch| switch.rails.count > 1);
        let mut slots = UplinkSlots {
            taken: NodeSet::empty(fabric.links()),
            taken_count: 0,
            failed: NodeSet::empty(fabric.links()),
            idle: NodeSet::of(
                fabric.links(),
                (0..fabric.links()).filter(|&cable| !plan.missing.contains(cable)),
            ),
            free: vec![0; switches],
            own: vec![0; if has_rails { switches } else { 0 }],
            strangers: vec![0; switches],
            plan,
        };
        for switch in 0..switches as u32 {
            slots.count(switch, !0);
        }
        slots
    }

    /// The slots of a switch that are free in all rails. `switch` is below [`Fabric::rail_width`].
    #[inline]
    pub fn free(&self, level: usize, group: GroupIndex, switch: u32) -> u64 {
        let number = (self.plan.first_switch[level][group as usize] + switch) as usize;
        if self.strangers[number] > 0 { 0 } else { self.free[number] }
    }

    pub fn is_free(&self, cable: CableId) -> bool {
        let switch = self.plan.switch_of(cable);
        switch.is_some_and(|switch| self.strangers[switch as usize] == 0 && self.is_idle(cable))
    }

    /// Appends the cables of a switch's `slots` in every rail; all must be free. At the top level only the empty set is
    /// valid.
    pub fn cables(
        &self,
        (level, group, switch): (usize, GroupIndex, u32),
        slots: u64,
        cables: &mut Vec<CableId>,
    ) {
        if slots == 0 {
            return;
        }
        let number = self.plan.first_switch[level][group as usize] + switch;
        for member in self.plan.switches[number as usize].rails.switches() {
            self.cables_of_one(member, slots, cables);
        }
    }

    fn cables_of_one(&self, switch: u32, slots: u64, cables: &mut Vec<CableId>) {
        let SlotSwitch { first, cables: parallel, .. } = self.plan.switches[switch as usize];
        let mut left = slots;
        if parallel == 1 {
            // Without parallel cables, each slot is exactly one cable.
            left &= self.idle.bits_from(first);
            while left != 0 {
                cables.push(first + left.trailing_zeros());
                left &= left - 1;
            }
            return;
        }
        while left != 0 {
            let parent = left.trailing_zeros() / parallel;
            let of_parent = bits(parallel) << (parent * parallel);
            let wanted = (left & of_parent).count_ones() as usize;
            let start = first + parent * parallel;
            cables.extend((start..start + parallel).filter(|&id| self.is_idle(id)).take(wanted));
            left &= !of_parent;
        }
    }

    pub fn take(&mut self, cables: &[CableId]) {
        self.change(cables, |slots, first, ports| {
            slots.taken_count += (ports & !slots.taken.bits_from(first)).count_ones();
            slots.taken.insert_bits(first, ports);
            slots.idle.remove_bits(first, ports);
        });
    }

    pub fn give_back(&mut self, cables: &[CableId]) {
        self.change(cables, |slots, first, ports| {
            slots.taken_count -= (ports & slots.taken.bits_from(first)).count_ones();
            slots.taken.remove_bits(first, ports);
            let gone = slots.failed.bits_from(first) | slots.plan.missing.bits_from(first);
            slots.idle.insert_bits(first, ports & !gone);
        });
    }

    /// Changes the state of cables, then recounts the slots. Adjacent cables of one switch are recounted together, up
    /// to 64 ports at a time.
    fn change(&mut self, cables: &[CableId], change: impl Fn(&mut Self, CableId, u64)) {
        let mut left = cables;
        while let Some(&cable) = left.first() {
            let Some(number) = self.plan.switch_of(cable) else {
                left = &left[1..];
                continue;
            };
            let SlotSwitch { first, parents, cables: parallel, .. } =
                self.plan.switches[number as usize];
            let end = first + parents * parallel;
            let first = cable - (cable - first) % MOST_UPLINKS;
            let end = end.min(first + MOST_UPLINKS);
            let together = left.iter().take_while(|&cable| (first..end).contains(cable));
            let (mut ports, mut count) = (0u64, 0);
            for &cable in together {
                ports |= 1 << (cable - first);
                count += 1;
            }
            change(self, first, ports);
            self.count(number, ports);
            left = &left[count..];
        }
    }

    pub fn set_in_service(&mut self, cable: CableId, in_service: bool) {
        if in_service {
            self.failed.remove(cable);
        } else {
            self.failed.insert(cable);
        }
        if self.is_there(cable) && !self.taken.contains(cable) {
            self.idle.insert(cable);
        } else {
            self.idle.remove(cable);
        }
        if let Some(switch) = self.plan.switch_of(cable) {
            self.count(switch, !0);
        }
    }

    /// The cables out of service.
    pub fn failed(&self) -> &NodeSet {
        &self.failed
    }

    /// Whether the cable is present and in service.
    pub fn is_there(&self, cable: CableId) -> bool {
        !self.failed.contains(cable) && !self.plan.missing.contains(cable)
    }

    /// Whether jobs own any cable.
    pub fn any_taken(&self) -> bool {
        self.taken_count > 0
    }

    pub fn is_taken(&self, cable: CableId) -> bool {
        self.taken.contains(cable)
    }

    /// Adds or removes a placement that may use any uplink of the group.
    pub fn change_strangers(
        &mut self,
        fabric: &Fabric,
        level: usize,
        group: GroupIndex,
        comes: bool,
    ) {
        let Some(firsts) = self.plan.first_switch.get(level).filter(|firsts| !firsts.is_empty())
        else {
            return;
        };
        let first = firsts[group as usize];
        let width = fabric.width(fabric.site_of_group(level, group), level);
        for switch in first..first + width {
            let count = &mut self.strangers[switch as usize];
            *count = if comes { *count + 1 } else { *count - 1 };
        }
    }

    fn is_idle(&self, cable: CableId) -> bool {
        self.idle.contains(cable)
    }

    /// Recounts the slots of a switch to the parents that the given ports lead to.
    fn count(&mut self, switch: u32, ports: u64) {
        let SlotSwitch { first, parents, cables, has_slots, rails } =
            self.plan.switches[switch as usize];
        if !has_slots {
            return;
        }
        let idle = self.idle.bits_from(first);
        let (counted, free) = match cables {
            1 => (ports & bits(parents), idle),
            _ => (0..parents).fold((0, 0), |(counted, free), parent| {
                let of_parent = bits(cables) << (parent * cables);
                if ports & of_parent == 0 {
                    return (counted, free);
                }
                let count = (idle & of_parent).count_ones();
                (counted | of_parent, free | bits(count) << (parent * cables))
            }),
        };
        let set = |slots: u64| slots & !counted | free & counted;
        if self.own.is_empty() {
            let free = &mut self.free[switch as usize];
            *free = set(*free);
            return;
        }
        self.own[switch as usize] = set(self.own[switch as usize]);
        let common = rails.switches().fold(!0, |all, member| all & self.own[member as usize]);
        self.free[rails.first as usize] = common;
    }
}

/// Returns a word with the lowest `count` bits set.
pub(crate) fn bits(count: u32) -> u64 {
    if count >= u64::BITS { !0 } else { (1 << count) - 1 }
}
