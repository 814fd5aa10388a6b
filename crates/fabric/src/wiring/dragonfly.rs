//! Dragonflies: groups of switches, joined all to all by cables between single switches.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::group_shape::{GroupShape, MOST_SWITCHES_OF_GROUP, SwitchSet, bits};
use super::leaves::Leaves;
use super::link_set::{LinkSet, united};
use crate::check::{check_name, most_cables, positive, too_many_cables};
use crate::description::{Detours, DragonflyDescription, SwitchCable};
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
/// Routing is minimal unless the machine has [`Detours`]. A message between groups crosses one cable, any that joins both;
/// inside a group it takes a shortest way, any of them.
///
/// A link of a [`LinkSet`] is a bit: for each switch, its cables to each switch of its group. After these, for each two
/// groups, a bit for each *lane*: all cables between one switch of each, in both directions.
#[derive(Debug, Clone)]
pub struct Dragonfly {
    /// The first switch of each group; then the number of switches.
    first: Vec<u32>,
    group_of: Vec<u32>,
    shapes: Vec<Arc<GroupShape>>,
    /// `gates[g * groups + h]`: the switches of `g` with cables to `h`.
    gates: Vec<SwitchSet>,
    /// By `g * groups + h`, with g < h: the lanes between two groups.
    between: Vec<Box<[Lane]>>,
    /// By the same number: the first word of the lanes between two groups, and after the last pair the number of words.
    first_lane: Vec<u32>,
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
    detours: Option<Detours>,
}

/// All cables between a switch of one group and a switch of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lane {
    /// The places of its switches in their groups, first that of the group with the lower number.
    pub ends: (u8, u8),
    /// The number of cables.
    pub cables: u32,
    /// Bandwidth of all of them in bytes per second, in each direction.
    pub bandwidth: f64,
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
        let DragonflyDescription { groups, cables, detours } = description;
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
            first_lane: Vec::new(),
            hops_between: (0..count * count).map(|_| OnceLock::new()).collect(),
            of_leaf: Vec::new(),
            of_group: Vec::new(),
            names: groups.clone(),
            cables: cables.clone(),
            first_cable: vec![0],
            parallel: HashMap::new(),
            detours: checked(*detours)?,
        };
        dragonfly.lay_cables(leaves)?;
        dragonfly.find_leaves(leaves)?;
        Ok(dragonfly)
    }

    fn lay_cables(&mut self, leaves: &Leaves<'_>) -> Result<(), InputError> {
        let groups = self.groups() as usize;
        let (switches, most) = (self.switches(), most_cables(leaves.nodes));
        let mut near = vec![0; switches as usize];
        let mut between: BTreeMap<usize, BTreeMap<(u8, u8), Lane>> = BTreeMap::new();
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
            }
            let (pair, ends) = if of_a < of_b {
                (of_a * groups + of_b, (at_a as u8, at_b as u8))
            } else {
                (of_b * groups + of_a, (at_b as u8, at_a as u8))
            };
            let lane = between.entry(pair).or_default().entry(ends);
            let lane = lane.or_insert(Lane { ends, cables: 0, bandwidth: 0.0 });
            lane.cables += count;
            lane.bandwidth += f64::from(count) * bandwidth;
        }
        self.parallel.retain(|_, count| *count > 1);
        for (pair, lanes) in between {
            self.between[pair] = lanes.into_values().collect();
        }
        let mut next = self.first_word_between();
        self.first_lane = vec![next];
        for lanes in &self.between {
            next += (lanes.len() as u32).div_ceil(u64::BITS);
            self.first_lane.push(next);
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
            let over = |&Lane { ends: (x, y), .. }: &Lane| {
                here.distance(at_a, x.into()) + 1 + there.distance(y.into(), at_b)
            };
            return self.between[pair].iter().map(over).min().unwrap_or(0);
        }
        let hops = self.hops_between[pair].get_or_init(|| self.measure_hops(of_a, of_b));
        u32::from(hops[at_a * width + at_b])
    }

    /// The hops from each switch of a group to each of another, which has a higher number.
    fn measure_hops(&self, group: u32, other: u32) -> Box<[u8]> {
        let lanes = &self.between[(group * self.groups() + other) as usize];
        let (here, there) = (&self.shapes[group as usize], &self.shapes[other as usize]);
        let mut table = Vec::with_capacity(here.size() * there.size());
        for at in 0..here.size() {
            // Links to the other group's end of a cable: there may be far more cables than ends.
            let mut reached: BTreeMap<u8, u32> = BTreeMap::new();
            for &Lane { ends: (x, y), .. } in lanes {
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

    /// The lanes between two different groups; of each, the first end is in the group with the lower number.
    #[inline]
    pub fn lanes(&self, group: u32, other: u32) -> &[Lane] {
        &self.between[self.pair(group, other)]
    }

    /// The words of the lanes between two different groups, of which bit `n` of the `w`-th is lane `64 w + n`.
    #[inline]
    pub fn lane_words(&self, group: u32, other: u32) -> Range<u32> {
        let pair = self.pair(group, other);
        self.first_lane[pair]..self.first_lane[pair + 1]
    }

    /// The lanes between two different groups, each with its word and bit of a [`LinkSet`].
    pub fn links_between(
        &self,
        group: u32,
        other: u32,
    ) -> impl Iterator<Item = ((u32, u64), &Lane)> + '_ {
        let numbers = self.lane_words(group, other);
        let words = numbers.flat_map(|word| (0..u64::BITS).map(move |bit| (word, 1 << bit)));
        words.zip(self.lanes(group, other))
    }

    fn pair(&self, group: u32, other: u32) -> usize {
        (group.min(other) * self.groups() + group.max(other)) as usize
    }

    /// All links that a job with these parts may use; the groups ascend.
    pub fn links_of(&self, parts: &[GroupPart]) -> LinkSet {
        self.links_over(parts, &LinkSet::default())
    }

    /// The links that a job with these parts may use if its messages between two groups keep to these lanes. Where the
    /// set has no lane of two of its groups, they may take any. The groups ascend.
    pub fn links_over(&self, parts: &[GroupPart], lanes: &LinkSet) -> LinkSet {
        let (mut between, mut gates) = (Vec::new(), vec![0; parts.len()]);
        for (index, part) in parts.iter().enumerate() {
            for (later, other) in parts.iter().enumerate().skip(index + 1) {
                let kept = lanes.words_in(self.lane_words(part.group, other.group));
                for (link, lane) in self.links_between(part.group, other.group) {
                    if is_kept(kept, link) {
                        gates[index] |= 1 << lane.ends.0;
                        gates[later] |= 1 << lane.ends.1;
                        between.push(link);
                    }
                }
            }
        }
        let mut words = Vec::new();
        for (part, gates) in parts.iter().zip(gates) {
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
        words.extend(united(between));
        LinkSet::of(words)
    }

    /// The lanes with one of these cables, which are counted from 0.
    pub fn lanes_with(&self, cables: impl Iterator<Item = CableId>) -> LinkSet {
        let lane = |cable| self.lane_of(self.cable(cable)?);
        LinkSet::of_any(cables.filter_map(lane).collect())
    }

    /// The cables of the lanes in a set, counted from 0, ascending.
    pub fn cables_of_lanes(&self, lanes: &LinkSet) -> Vec<CableId> {
        let is_in = |cable| {
            self.lane_of(cable).is_some_and(|(number, bit)| {
                lanes.words_in(number..number + 1).iter().any(|word| word.1 & bit != 0)
            })
        };
        let runs = self.runs().filter(|&(_, cable)| is_in(cable));
        runs.flat_map(|(first, cable)| first..first + cable.count).collect()
    }

    /// Whether a job may use a cable if its messages between two groups keep to these lanes. Where the set has no lane of
    /// the two, they may take any.
    pub fn may_use(&self, lanes: &LinkSet, cable: SwitchCable) -> bool {
        let Some(link) = self.lane_of(cable) else { return true };
        let (a, b) = (self.group_of(cable.between.0), self.group_of(cable.between.1));
        is_kept(lanes.words_in(self.lane_words(a, b)), link)
    }

    /// The word and the bit of the lane of a cable; `None` inside a group.
    fn lane_of(&self, cable: SwitchCable) -> Option<(u32, u64)> {
        let (a, b) = (cable.between.0.min(cable.between.1), cable.between.0.max(cable.between.1));
        let (of_a, of_b) = (self.group_of(a), self.group_of(b));
        if of_a == of_b {
            return None;
        }
        let ends = (self.place_of(a) as u8, self.place_of(b) as u8);
        let lane = self.lanes(of_a, of_b).partition_point(|lane| lane.ends < ends) as u32;
        Some((self.lane_words(of_a, of_b).start + lane / u64::BITS, 1 << (lane % u64::BITS)))
    }

    /// The words of a set with the links that lead from one group to another. They are its last.
    pub fn between_groups<'a>(&self, links: &'a LinkSet) -> &'a [(u32, u64)] {
        links.words_in(self.first_word_between()..u32::MAX)
    }

    /// Whether a job uses a link between two groups, given the words of all links in use.
    #[inline]
    pub fn is_used_between(&self, group: u32, other: u32, used: &dyn Fn(u32) -> u64) -> bool {
        self.lane_words(group, other).any(|number| used(number) != 0)
    }

    /// Whether no job uses some lane between two groups, given the words of all links in use.
    #[inline]
    pub fn has_free_lane(&self, group: u32, other: u32, used: &dyn Fn(u32) -> u64) -> bool {
        let taken = self.lane_words(group, other).map(|number| used(number).count_ones());
        taken.sum::<u32>() < self.lanes(group, other).len() as u32
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
        self.first_lane.last().copied().unwrap_or_default()
    }

    fn first_word_between(&self) -> u32 {
        self.switches() * WORDS_OF_SWITCH
    }

    /// The number of directed cables in a set of links.
    pub(super) fn cables_in(&self, links: &LinkSet) -> u32 {
        let first_between = self.first_word_between();
        let mut cables = 0;
        for &(number, word) in links.words() {
            if number < first_between {
                let switch = number / WORDS_OF_SWITCH;
                let first = self.first[self.group_of(switch) as usize];
                for bit in bits(word.into()).map(|bit| bit as u32) {
                    let other = first + number % WORDS_OF_SWITCH * u64::BITS + bit;
                    cables += self.parallel.get(&(switch, other)).copied().unwrap_or(1);
                }
            } else {
                let pair = self.first_lane.partition_point(|&first| first <= number) - 1;
                let first = ((number - self.first_lane[pair]) * u64::BITS) as usize;
                let lanes = bits(word.into()).map(|bit| self.between[pair][first + bit]);
                cables += 2 * lanes.map(|lane| lane.cables).sum::<u32>();
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
        self.between.iter().flat_map(|lanes| lanes.iter()).map(|lane| lane.cables).sum()
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
        let (groups, cables) = (self.names.clone(), self.cables.clone());
        DragonflyDescription { groups, cables, detours: self.detours }
    }

    /// How far the routing of messages between groups adapts to load; `None` if it is minimal.
    pub fn detours(&self) -> Option<Detours> {
        self.detours
    }
}

/// Checks the parts of a routing that adapts to load.
fn checked(detours: Option<Detours>) -> Result<Option<Detours>, InputError> {
    match detours {
        Some(Detours { part, .. }) if !(part > 0.0 && part <= 1.0) => Err(InputError::whole(
            format!("detours must be a part of the bytes over 0 and up to 1, not {part}"),
        )),
        Some(Detours { share, .. }) if !(share > 0.0 && share < 1.0) => Err(InputError::whole(
            format!("the share of each cable must be over 0 and below 1, not {share}"),
        )),
        detours => Ok(detours),
    }
}

/// Whether a job that keeps to these lanes between two groups may use one of them. It may use any if there are none.
fn is_kept(lanes: &[(u32, u64)], (number, bit): (u32, u64)) -> bool {
    lanes.is_empty() || lanes.iter().any(|word| word.0 == number && word.1 & bit != 0)
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
