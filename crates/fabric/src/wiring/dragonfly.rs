//! Dragonflies: groups of switches, joined all to all by cables between single switches.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::group_shape::{GroupShape, MOST_SWITCHES_OF_GROUP, SwitchSet, bits};
use super::leaves::Leaves;
use super::link_set::LinkSet;
use crate::check::{check_name, most_cables, positive, too_many_cables};
use crate::description::{DragonflyDescription, SwitchCable};
use crate::error::{InputError, shown};
use crate::ids::{CableId, GroupIndex};

/// The most groups, because there is a table of all pairs.
const MOST_GROUPS: usize = 1024;
/// The most switches of a machine with tables of hops between groups, which have an entry for each pair of switches.
const MOST_SWITCHES_OF_TABLES: u32 = 1 << 14;
/// The words of a switch in a [`LinkSet`]: one bit for each switch of its group.
const WORDS_OF_SWITCH: u32 = SwitchSet::BITS / u64::BITS;

/// The cables of a dragonfly (Kim et al. 2008). Switches are numbered group by group. A switch may have no nodes.
///
/// Routing is minimal. A message between groups crosses one cable, any that joins both; inside a group it takes a
/// shortest way, any of them.
///
/// A link of a [`LinkSet`] is a bit: for each switch, its cables to each switch of its group; after these, for each
/// group, its cables to each other group.
#[derive(Debug, Clone)]
pub struct Dragonfly {
    /// The first switch of each group; then the number of switches.
    first: Vec<u32>,
    group_of: Vec<u32>,
    shapes: Vec<Arc<GroupShape>>,
    /// `gates[g * groups + h]`: the switches of `g` with cables to `h`.
    gates: Vec<SwitchSet>,
    /// By `g * groups + h`, with g < h: the ends of the cables between two groups, in g and in h.
    between: Vec<Box<[(u8, u8)]>>,
    /// By the same number: the hops from each switch of g to each of h, computed on first use; not on large machines.
    hops_between: Vec<OnceLock<Box<[u8]>>>,
    /// The switch of each leaf of the hierarchy.
    of_leaf: Vec<u32>,
    /// The dragonfly's number of each group of level 2 of the hierarchy.
    of_group: Vec<u32>,
    names: Vec<Vec<String>>,
    cables: Vec<SwitchCable>,
    /// The first cable of each entry of `cables`, counted from 0; then their number.
    first_cable: Vec<u32>,
    /// Cables of each pair of switches of a group, in both orders, if more than one.
    parallel: HashMap<(u32, u32), u32>,
    /// `cables_between[g * groups + h]`: the number of cables.
    cables_between: Vec<u32>,
}

/// The switches of a job in one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPart {
    /// The group.
    pub group: u32,
    /// The switches with nodes of the job; not empty.
    pub switches: SwitchSet,
}

impl Dragonfly {
    pub(super) fn build(
        description: &DragonflyDescription,
        leaves: &Leaves<'_>,
    ) -> Result<Self, InputError> {
        let DragonflyDescription { groups, cables } = description;
        let first = numbered(groups)?;
        let switches = first[groups.len()];
        let mut group_of = Vec::with_capacity(switches as usize);
        for (group, names) in (0..).zip(groups) {
            group_of.resize(group_of.len() + names.len(), group);
        }
        let count = groups.len();
        let mut dragonfly = Dragonfly {
            first,
            group_of,
            shapes: Vec::new(),
            gates: vec![0; count * count],
            between: vec![Box::default(); count * count],
            hops_between: (0..count * count).map(|_| OnceLock::new()).collect(),
            of_leaf: Vec::new(),
            of_group: Vec::new(),
            names: groups.clone(),
            cables: cables.clone(),
            first_cable: vec![0],
            parallel: HashMap::new(),
            cables_between: vec![0; count * count],
        };
        dragonfly.lay_cables(leaves)?;
        dragonfly.find_leaves(leaves)?;
        Ok(dragonfly)
    }

    fn lay_cables(&mut self, leaves: &Leaves<'_>) -> Result<(), InputError> {
        let groups = self.groups() as usize;
        let (switches, most) = (self.switches(), most_cables(leaves.nodes));
        let mut near = vec![0; switches as usize];
        let mut between: BTreeMap<usize, Vec<(u8, u8)>> = BTreeMap::new();
        let mut total = 0u64;
        for &SwitchCable { between: (a, b), count, bandwidth } in &self.cables {
            if a >= switches || b >= switches || a == b || count == 0 || !positive(bandwidth) {
                return Err(InputError::whole(format!(
                    "a cable must join two of the {switches} switches, with a count and a bandwidth above 0, not \
                     {a} and {b}, {count} times, {bandwidth} B/s"
                )));
            }
            total += u64::from(count);
            if total > most {
                return Err(too_many_cables(leaves.machine, leaves.nodes));
            }
            self.first_cable.push(total as u32);
            let (of_a, of_b) = (self.group_of(a) as usize, self.group_of(b) as usize);
            let (at_a, at_b) = (self.place_of(a), self.place_of(b));
            if of_a == of_b {
                near[a as usize] |= 1 << at_b;
                near[b as usize] |= 1 << at_a;
                for pair in [(a, b), (b, a)] {
                    *self.parallel.entry(pair).or_default() += count;
                }
                continue;
            }
            for (from, at, to) in [(of_a, at_a, of_b), (of_b, at_b, of_a)] {
                self.gates[from * groups + to] |= 1 << at;
                self.cables_between[from * groups + to] += count;
            }
            let (pair, ends) = if of_a < of_b {
                (of_a * groups + of_b, (at_a as u8, at_b as u8))
            } else {
                (of_b * groups + of_a, (at_b as u8, at_a as u8))
            };
            between.entry(pair).or_default().push(ends);
        }
        self.parallel.retain(|_, count| *count > 1);
        for (pair, mut ends) in between {
            ends.sort_unstable();
            ends.dedup();
            self.between[pair] = ends.into();
        }
        for group in 0..groups {
            if let Some(other) =
                (0..groups).find(|&other| other != group && self.gates[group * groups + other] == 0)
            {
                return Err(InputError::whole(format!(
                    "no cable joins groups {group} and {other}: minimal routing needs one between each two groups"
                )));
            }
            let range = self.first[group] as usize..self.first[group + 1] as usize;
            let shape = GroupShape::new(near[range].to_vec()).map_err(|(a, b)| {
                let name = |place: usize| shown(&self.names[group][place]);
                let (a, b) = (name(a), name(b));
                InputError::whole(format!(
                    "no cables inside group {group} lead from switch {a} to {b}"
                ))
            })?;
            let same = self.shapes.iter().find(|other| ***other == shape).cloned();
            self.shapes.push(same.unwrap_or_else(|| Arc::new(shape)));
        }
        Ok(())
    }

    /// Finds the switch of each leaf by its name.
    fn find_leaves(&mut self, leaves: &Leaves<'_>) -> Result<(), InputError> {
        if leaves.depth != 3 || !leaves.is_even {
            return Err(InputError::whole(
                "a dragonfly must be one site of groups of switches of nodes, all equally deep",
            ));
        }
        let mut by_name = HashMap::new();
        for (switch, name) in (0..).zip(self.names.iter().flatten()) {
            check_name("switch", name)?;
            if by_name.insert(name.as_str(), switch).is_some() {
                return Err(InputError::whole(format!("two switches are named {}", shown(name))));
            }
        }
        for (group, children) in &leaves.groups {
            let mut own = None;
            for name in &leaves.names[children.start as usize..children.end as usize] {
                let Some(&switch) = by_name.get(name) else {
                    return Err(InputError::whole(format!(
                        "switch {} has nodes, but the dragonfly has no switch of this name",
                        shown(name)
                    )));
                };
                if *own.get_or_insert(self.group_of(switch)) != self.group_of(switch) {
                    return Err(InputError::whole(format!(
                        "{} has switches of two groups of the dragonfly",
                        shown(group)
                    )));
                }
                self.of_leaf.push(switch);
            }
            let own = own.unwrap_or_default();
            if self.of_group.contains(&own) {
                return Err(InputError::whole(format!(
                    "{} is not the only one with switches of its group of the dragonfly",
                    shown(group)
                )));
            }
            self.of_group.push(own);
        }
        let mut of_leaf = self.of_leaf.clone();
        of_leaf.sort_unstable();
        if of_leaf.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(InputError::whole("two leaves have the name of one switch"));
        }
        Ok(())
    }

    /// The number of groups.
    pub fn groups(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// The number of switches, with or without nodes.
    pub fn switches(&self) -> u32 {
        self.group_of.len() as u32
    }

    /// The switches of a group.
    pub fn switches_of(&self, group: u32) -> Range<u32> {
        self.first[group as usize]..self.first[group as usize + 1]
    }

    /// The group of a switch.
    #[inline]
    pub fn group_of(&self, switch: u32) -> u32 {
        self.group_of[switch as usize]
    }

    /// The place of a switch in its group, from 0.
    #[inline]
    pub fn place_of(&self, switch: u32) -> u32 {
        switch - self.first[self.group_of(switch) as usize]
    }

    /// The switch of a leaf of the hierarchy.
    #[inline]
    pub fn switch_of_leaf(&self, leaf: GroupIndex) -> u32 {
        self.of_leaf[leaf as usize]
    }

    /// The dragonfly's number of a group of level 2 of the hierarchy.
    #[inline]
    pub fn group_of_level_2(&self, group: GroupIndex) -> u32 {
        self.of_group[group as usize]
    }

    /// The switches of a group that have cables to another group.
    #[inline]
    pub fn gates(&self, group: u32, other: u32) -> SwitchSet {
        self.gates[(group * self.groups() + other) as usize]
    }

    /// Hops between two switches: at most one cable between groups, and the shortest ways to and from it.
    pub fn hops(&self, a: u32, b: u32) -> u32 {
        let (of_a, of_b) = (self.group_of(a), self.group_of(b));
        let (at_a, at_b) = (self.place_of(a) as usize, self.place_of(b) as usize);
        if of_a == of_b {
            return self.shapes[of_a as usize].distance(at_a, at_b);
        }
        if of_a > of_b {
            return self.hops(b, a);
        }
        let pair = (of_a * self.groups() + of_b) as usize;
        let width = self.shapes[of_b as usize].size();
        if self.switches() > MOST_SWITCHES_OF_TABLES {
            let (here, there) = (&self.shapes[of_a as usize], &self.shapes[of_b as usize]);
            let over = |&(x, y): &(u8, u8)| {
                here.distance(at_a, x.into()) + 1 + there.distance(y.into(), at_b)
            };
            return self.between[pair].iter().map(over).min().unwrap_or(0);
        }
        let hops = self.hops_between[pair].get_or_init(|| self.measure_hops(of_a, of_b));
        u32::from(hops[at_a * width + at_b])
    }

    /// The hops from each switch of a group to each of another, which has a higher number.
    fn measure_hops(&self, group: u32, other: u32) -> Box<[u8]> {
        let ends = &self.between[(group * self.groups() + other) as usize];
        let (here, there) = (&self.shapes[group as usize], &self.shapes[other as usize]);
        let mut table = Vec::with_capacity(here.size() * there.size());
        for at in 0..here.size() {
            // Links to the other group's end of a cable: there may be far more cables than ends.
            let mut reached: BTreeMap<u8, u32> = BTreeMap::new();
            for &(x, y) in ends {
                let links = here.distance(at, x.into()) + 1;
                reached.entry(y).and_modify(|least| *least = links.min(*least)).or_insert(links);
            }
            table.extend((0..there.size()).map(|to| {
                let over = |(&y, links): (&u8, &u32)| links + there.distance(y.into(), to);
                reached.iter().map(over).min().unwrap_or(0).min(u8::MAX.into()) as u8
            }));
        }
        table.into()
    }

    /// The switches of some leaves, by group in ascending order.
    pub fn parts_of(&self, leaves: impl Iterator<Item = GroupIndex>) -> Vec<GroupPart> {
        let mut parts: Vec<GroupPart> = Vec::new();
        for leaf in leaves {
            let switch = self.switch_of_leaf(leaf);
            let (group, bit) = (self.group_of(switch), 1 << self.place_of(switch));
            // Nodes mostly come in order, so the last part is nearly always the right one.
            match parts.iter_mut().rev().find(|part| part.group == group) {
                Some(part) => part.switches |= bit,
                None => parts.push(GroupPart { group, switches: bit }),
            }
        }
        parts.sort_unstable_by_key(|part| part.group);
        parts
    }

    /// The gateways of a group to the other groups of a job.
    pub fn gates_to(&self, group: u32, others: impl Iterator<Item = u32>) -> SwitchSet {
        others.filter(|&other| other != group).fold(0, |set, other| set | self.gates(group, other))
    }

    /// All links that a job with these parts may use; the groups ascend.
    pub fn links_of(&self, parts: &[GroupPart]) -> LinkSet {
        let mut words = Vec::new();
        for part in parts {
            let gates = self.gates_to(part.group, parts.iter().map(|other| other.group));
            let shape = &self.shapes[part.group as usize];
            let mut rows = vec![0; shape.size()];
            shape.add_ways(part.switches, part.switches | gates, &mut rows);
            if gates != 0 {
                shape.add_ways(gates, part.switches, &mut rows);
            }
            for (switch, row) in self.switches_of(part.group).zip(rows) {
                let number = switch * WORDS_OF_SWITCH;
                words.push((number, row as u64));
                words.push((number + 1, (row >> u64::BITS) as u64));
            }
        }
        if parts.len() > 1 {
            let width = self.words_of_group();
            for part in parts {
                let first = self.first_word_between() + part.group * width;
                let mut row = vec![0u64; width as usize];
                for other in parts.iter().filter(|other| other.group != part.group) {
                    row[(other.group / u64::BITS) as usize] |= 1 << (other.group % u64::BITS);
                }
                words.extend((first..).zip(row));
            }
        }
        LinkSet::of(words)
    }

    /// The words of a set with the links that lead from one group to another. They are its last.
    pub fn between_groups<'a>(&self, links: &'a LinkSet) -> &'a [(u32, u64)] {
        links.words_from(self.first_word_between())
    }

    /// Whether a job uses the links between two groups, given the words of all links in use.
    #[inline]
    pub fn is_used_between(&self, group: u32, other: u32, used: &dyn Fn(u32) -> u64) -> bool {
        let word = self.first_word_between() + group * self.words_of_group() + other / u64::BITS;
        used(word) >> (other % u64::BITS) & 1 == 1
    }

    /// For each switch of a group, the switches of the group to which all shortest ways are free, given the words of
    /// all links in use; `None` if no link of the group is in use.
    pub fn open_in(&self, group: u32, used: &dyn Fn(u32) -> u64) -> Option<Vec<SwitchSet>> {
        let row = |switch: u32| {
            let number = switch * WORDS_OF_SWITCH;
            SwitchSet::from(used(number)) | SwitchSet::from(used(number + 1)) << u64::BITS
        };
        let used: Vec<SwitchSet> = self.switches_of(group).map(row).collect();
        let is_used = used.iter().any(|&row| row != 0);
        is_used.then(|| self.shapes[group as usize].open(&used))
    }

    /// The group of each word of links inside groups, which come first.
    pub fn groups_of_words(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.first_word_between()).map(|word| self.group_of(word / WORDS_OF_SWITCH))
    }

    /// The number of words over which the links are spread.
    pub(super) fn link_words(&self) -> u32 {
        self.first_word_between() + self.groups() * self.words_of_group()
    }

    fn first_word_between(&self) -> u32 {
        self.switches() * WORDS_OF_SWITCH
    }

    fn words_of_group(&self) -> u32 {
        self.groups().div_ceil(u64::BITS)
    }

    /// The number of directed cables in a set of links.
    pub(super) fn cables_in(&self, links: &LinkSet) -> u32 {
        let first_between = self.first_word_between();
        let mut cables = 0;
        for &(number, word) in links.words() {
            for bit in bits(word.into()).map(|bit| bit as u32) {
                cables += if number < first_between {
                    let switch = number / WORDS_OF_SWITCH;
                    let place = number % WORDS_OF_SWITCH * u64::BITS + bit;
                    let other = self.first[self.group_of(switch) as usize] + place;
                    self.parallel.get(&(switch, other)).copied().unwrap_or(1)
                } else {
                    let (group, word) = (
                        (number - first_between) / self.words_of_group(),
                        (number - first_between) % self.words_of_group(),
                    );
                    let other = word * u64::BITS + bit;
                    self.cables_between[(group * self.groups() + other) as usize]
                };
            }
        }
        cables
    }

    /// The number of cables between switches.
    pub fn cables(&self) -> u32 {
        self.first_cable.last().copied().unwrap_or_default()
    }

    /// The number of cables between switches of different groups.
    pub fn cables_between_groups(&self) -> u32 {
        self.cables_between.iter().sum::<u32>() / 2
    }

    /// The entries of the description, each with its first cable, counted from 0.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (CableId, SwitchCable)> + '_ {
        self.first_cable.iter().copied().zip(self.cables.iter().copied())
    }

    /// The shape of each group.
    pub(crate) fn shapes(&self) -> &[Arc<GroupShape>] {
        &self.shapes
    }

    /// The entry of the description to which a cable belongs; cables are counted from 0 here.
    pub fn cable(&self, cable: CableId) -> Option<SwitchCable> {
        let entry = self.first_cable.partition_point(|&first| first <= cable).checked_sub(1)?;
        self.cables.get(entry).copied()
    }

    /// The name of a switch.
    pub fn switch_name(&self, switch: u32) -> &str {
        let group = self.group_of(switch) as usize;
        &self.names[group][(switch - self.first[group]) as usize]
    }

    /// The description that the dragonfly was built from.
    pub fn description(&self) -> DragonflyDescription {
        DragonflyDescription { groups: self.names.clone(), cables: self.cables.clone() }
    }
}

/// The number of the first switch of each group; then the number of switches.
fn numbered(groups: &[Vec<String>]) -> Result<Vec<u32>, InputError> {
    let mut first = vec![0];
    let mut switches = 0;
    for (group, names) in groups.iter().enumerate() {
        check_group(group, names)?;
        switches += names.len() as u32;
        first.push(switches);
    }
    Ok(first)
}

/// Checks the number of a group, from 0, and of its switches.
pub(crate) fn check_group(group: usize, names: &[String]) -> Result<(), InputError> {
    if group >= MOST_GROUPS {
        return Err(InputError::whole(format!("the dragonfly has more than {MOST_GROUPS} groups")));
    }
    if names.is_empty() || names.len() > MOST_SWITCHES_OF_GROUP {
        return Err(InputError::whole(format!(
            "group {group} of the dragonfly must have 1 to {MOST_SWITCHES_OF_GROUP} switches, not {}",
            names.len()
        )));
    }
    Ok(())
}
