//! Which uplinks of leaves and second-level switches are free.

use std::sync::Arc;

use topolane_fabric::{CableId, Fabric, GroupIndex, NodeSet};

/// Uplinks of one switch fit one word.
pub(crate) const MOST_UPLINKS: u32 = u64::BITS;

/// The free slots of every switch below the top of the tree.
///
/// Lane `a * cables + j` of a switch is there if more than `j` of its parallel cables to parent `a` are free: they
/// are alike, so what two switches have in common is the intersection of their slots. A switch with more than 64
/// uplinks has no slots, nor has one that several rails share.
///
/// A slot is one in all rails: switch `n` of a group stands for its switches of that number in every rail. It is free if all
/// of them have it free, and its cables are one of each. docs/explanation/dedicated-links.md says what that costs.
#[derive(Debug)]
pub(crate) struct UplinkSlots {
    plan: Arc<Plan>,
    /// Cables that are owned, of all.
    taken: NodeSet,
    /// How many they are.
    taken_count: u32,
    /// Cables that have failed.
    failed: NodeSet,
    /// Cables that are there, in service and not owned.
    idle: NodeSet,
    /// Free slots of every switch; of a switch that stands for those of several rails, what all have free.
    free: Vec<u64>,
    /// Free slots of every switch for itself; empty on machines without rails.
    own: Vec<u64>,
    /// Placements that cross the group of every switch and own no link: they may use any.
    strangers: Vec<u32>,
}

/// What never changes.
#[derive(Debug)]
struct Plan {
    /// Switches of the groups of a level that stand before each group, by level from 1.
    first_switch: Vec<Vec<u32>>,
    switches: Vec<Switch>,
    /// The switch of each cable that is not a node's, and its place there.
    of_cable: Vec<Option<(u32, u32)>>,
    /// Cables that the machine lacks.
    missing: NodeSet,
}

#[derive(Debug, Clone, Copy)]
struct Switch {
    first: CableId,
    parents: u32,
    /// Parallel cables to each parent.
    cables: u32,
    /// Whether its uplinks can be owned.
    has_slots: bool,
    /// The switches of the same number in all rails: the first, how many, and how far apart their numbers are.
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

impl Plan {
    fn of(fabric: &Fabric) -> Self {
        let mut plan = Plan {
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
            self.switches.push(Switch { first, parents, cables: cabling.cables, has_slots, rails });
            for port in 0..ports {
                self.of_cable[(first + port) as usize] = Some((number, port));
            }
        }
    }
}

impl UplinkSlots {
    pub fn new(fabric: &Fabric) -> Self {
        let plan = Arc::new(Plan::of(fabric));
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
            for parent in 0..slots.plan.switches[switch as usize].parents {
                slots.count(switch, parent);
            }
        }
        slots
    }

    /// The free slots of a switch, which has a number below [`Fabric::rail_width`]: in all rails.
    #[inline]
    pub fn free(&self, level: usize, group: GroupIndex, switch: u32) -> u64 {
        let number = (self.plan.first_switch[level][group as usize] + switch) as usize;
        if self.strangers[number] > 0 { 0 } else { self.free[number] }
    }

    pub fn is_free(&self, cable: CableId) -> bool {
        let place = self.plan.of_cable.get(cable as usize).copied().flatten();
        place.is_some_and(|(switch, _)| self.strangers[switch as usize] == 0 && self.is_idle(cable))
    }

    /// The cables of `slots` of a switch in every rail, of which all are free.
    pub fn cables(
        &self,
        (level, group, switch): (usize, GroupIndex, u32),
        slots: u64,
        cables: &mut Vec<CableId>,
    ) {
        let number = self.plan.first_switch[level][group as usize] + switch;
        for member in self.plan.switches[number as usize].rails.switches() {
            self.cables_of_one(member, slots, cables);
        }
    }

    fn cables_of_one(&self, switch: u32, slots: u64, cables: &mut Vec<CableId>) {
        let Switch { first, cables: parallel, .. } = self.plan.switches[switch as usize];
        let mut left = slots;
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
        self.change(cables, |slots, cable| {
            slots.taken_count += u32::from(!slots.taken.contains(cable));
            slots.taken.insert(cable);
            slots.idle.remove(cable);
        });
    }

    pub fn give_back(&mut self, cables: &[CableId]) {
        self.change(cables, |slots, cable| {
            slots.taken_count -= u32::from(slots.taken.contains(cable));
            slots.taken.remove(cable);
            if slots.is_there(cable) {
                slots.idle.insert(cable);
            }
        });
    }

    /// Changes cables, then counts the slots anew: once for those to one parent that stand together.
    fn change(&mut self, cables: &[CableId], change: impl Fn(&mut Self, CableId)) {
        let mut changed = None;
        for &cable in cables {
            let place = self.plan.of_cable.get(cable as usize).copied().flatten();
            let Some((switch, port)) = place else { continue };
            let parent = port / self.plan.switches[switch as usize].cables;
            if let Some((switch, parent)) = changed.filter(|&other| other != (switch, parent)) {
                self.count(switch, parent);
            }
            changed = Some((switch, parent));
            change(self, cable);
        }
        if let Some((switch, parent)) = changed {
            self.count(switch, parent);
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
        if let Some(Some((switch, port))) = self.plan.of_cable.get(cable as usize).copied() {
            self.count(switch, port / self.plan.switches[switch as usize].cables);
        }
    }

    /// Cables out of service.
    pub fn failed(&self) -> &NodeSet {
        &self.failed
    }

    /// Whether the machine has the cable and it is in service.
    pub fn is_there(&self, cable: CableId) -> bool {
        !self.failed.contains(cable) && !self.plan.missing.contains(cable)
    }

    /// Whether any cable is owned.
    pub fn any_taken(&self) -> bool {
        self.taken_count > 0
    }

    pub fn is_taken(&self, cable: CableId) -> bool {
        self.taken.contains(cable)
    }

    /// One more or one less placement may use any uplink of the group.
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

    /// Sets the slots of a switch to one of its parents anew.
    fn count(&mut self, switch: u32, parent: u32) {
        let Switch { first, cables, has_slots, rails, .. } = self.plan.switches[switch as usize];
        if !has_slots {
            return;
        }
        let start = first + parent * cables;
        let idle = match cables {
            1 => u32::from(self.is_idle(start)),
            _ => self.idle.count_in(start..start + cables),
        };
        let shift = parent * cables;
        let set = |free: u64| free & !(bits(cables) << shift) | bits(idle) << shift;
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

/// The lowest `count` bits.
pub(crate) fn bits(count: u32) -> u64 {
    if count >= u64::BITS { !0 } else { (1 << count) - 1 }
}
