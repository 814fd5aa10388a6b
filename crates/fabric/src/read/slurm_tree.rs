//! Converts switches, as Slurm accepts them, to trees. They may have no nodes, several parents, or nodes on several
//! leaves.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::assemble::{Below, DescribedSwitch, Listed, child, cycle, listed, numbers, trees};
use super::slurm_lines::LinePosition;
use super::union::Union;
use super::{Read, UNNAMED};
use crate::description::{Cabling, Description, SiteDescription};
use crate::error::{InputError, shown};
use crate::node_kind::NodeKind;
use crate::presets::QDR;

/// Returns the trees of the switches, each as a site. A note reports everything that a tree cannot represent.
///
/// A node belongs to the first leaf that names it. A switch with no node below it is skipped. Switches that name the
/// same child become one group, like parallel switches of a subnet. If they are on several levels, the nearest ones
/// become the group, and those above join the next group. Cables are assumed: one parent and one cable per level.
///
/// With `only_trees`, a node on two leaves and a switch below two others are refused, because such a tree cannot
/// guarantee links.
///
/// # Errors
/// A switch whose name occurs twice, that names itself or one that is not described, or that is in a cycle; no node at
/// all.
pub(super) fn of_switches(
    switches: Vec<DescribedSwitch>,
    kind: NodeKind,
    only_trees: bool,
) -> Result<Read, InputError> {
    let mut notes = Vec::new();
    let mut tree = SwitchTree::of(listed(switches)?)?;
    tree.note_blanks(&mut notes);
    if let Some(place) = tree.keep_first_leaf(&mut notes).filter(|_| only_trees) {
        return Err(place.refuse(notes.pop().unwrap_or_default()));
    }
    tree.skip_empty(&mut notes)?;
    if !only_trees {
        tree.join_parents(&mut notes);
    }
    let cabling = Cabling::new(1, 1, QDR);
    let site = |tree: super::assemble::RootedTree| SiteDescription {
        cabling: vec![cabling; tree.depth],
        root: tree.root,
        missing: Vec::new(),
    };
    let sites: Vec<SiteDescription> = trees(tree.listed())?.into_iter().map(site).collect();
    if sites.len() > 1 {
        notes.push(format!(
            "no switch reaches all nodes: the {} trees are sites of their own, and no job gets nodes of two of them. Slurm warns \
             of it too",
            sites.len()
        ));
    }
    let description = Description {
        name: UNNAMED.to_owned(),
        sites,
        kinds: vec![kind],
        ..Description::default()
    };
    Ok(Read::with_notes(description, notes))
}

/// The switches, in the order of the file.
struct SwitchTree {
    switches: Vec<Listed>,
    /// The children of each switch, without repetitions; empty for a leaf.
    below: Vec<Vec<usize>>,
    /// The level of each switch above the leaves, by the longest path down.
    level: Vec<usize>,
    /// Whether each switch is skipped, or merged into the group of another.
    gone: Vec<bool>,
}

impl SwitchTree {
    fn of(switches: Vec<Listed>) -> Result<SwitchTree, InputError> {
        let by_name = numbers(&switches)?;
        let mut below = Vec::with_capacity(switches.len());
        for own in &switches {
            let mut children = Vec::new();
            if let Below::Switches(names) = &own.below {
                let mut seen = HashSet::with_capacity(names.len());
                for name in names {
                    let child = child(own, name, &by_name)?;
                    if seen.insert(child) {
                        children.push(child);
                    }
                }
            }
            below.push(children);
        }
        let level = levels(&switches, &below)?;
        let gone = vec![false; switches.len()];
        Ok(SwitchTree { switches, below, level, gone })
    }

    /// Notes which child Slurm would not find, because blanks separate the names of a hostlist.
    fn note_blanks(&self, notes: &mut Vec<String>) {
        let child = self.below.iter().flatten().map(|&child| &self.switches[child]);
        let odd = child.into_iter().find(|child| child.name.contains(char::is_whitespace));
        if let Some(Listed { name, place, .. }) = odd {
            let name = shown(name);
            notes.push(format!(
                "switch {name} of {place} has a blank in its name: Slurm finds no child of that name, and refuses the file"
            ));
        }
    }

    /// Keeps every node only on the first leaf that names it. Returns the position of the first node that was also on
    /// another leaf.
    fn keep_first_leaf(&mut self, notes: &mut Vec<String>) -> Option<LinePosition> {
        let mut leaf_of: HashMap<String, usize> = HashMap::new();
        let mut several: Vec<(String, usize, usize)> = Vec::new();
        for (index, switch) in self.switches.iter_mut().enumerate() {
            let Below::Nodes(names) = &mut switch.below else { continue };
            names.retain(|name| keep_first(name, index, &mut leaf_of, &mut several));
        }
        let (name, first, other) = several.first()?;
        let [first, other] = [first, other].map(|&index| &self.switches[index]);
        let (leaf, also) = (&first.name, &other.name);
        notes.push(format!(
            "node {name} is on leaf switch {leaf} and on {also} of {}{}: a node counts on the first leaf that names it. Slurm \
             warns of it too",
            other.place,
            others(several.len() - 1)
        ));
        Some(other.place.clone())
    }

    /// Removes the switches with no node below them.
    fn skip_empty(&mut self, notes: &mut Vec<String>) -> Result<(), InputError> {
        let mut has_nodes = vec![false; self.switches.len()];
        let mut order: Vec<usize> = (0..self.switches.len()).collect();
        order.sort_by_key(|&index| self.level[index]);
        for index in order {
            has_nodes[index] = match &self.switches[index].below {
                Below::Nodes(names) => !names.is_empty(),
                Below::Switches(_) => self.below[index].iter().any(|&child| has_nodes[child]),
            };
        }
        let mut empty = self.switches.iter().zip(&has_nodes).filter(|&(_, &has)| !has);
        let Some((first, _)) = empty.next() else { return Ok(()) };
        if !has_nodes.contains(&true) {
            return Err(first
                .place
                .refuse(format!("switch {} has no nodes, and no other has", first.name)));
        }
        notes.push(format!(
            "switch {} of {} has no nodes{}: it is skipped, as no job can use it. Slurm takes it since 25.05, and 24.11 refuses it",
            first.name,
            first.place,
            others(empty.count())
        ));
        for children in &mut self.below {
            children.retain(|&child| has_nodes[child]);
        }
        for (index, has_nodes) in has_nodes.into_iter().enumerate() {
            if !has_nodes {
                self.below[index].clear();
                self.gone[index] = true;
            }
        }
        Ok(())
    }

    /// Merges the switches that share a child into one group, so that every switch has at most one parent.
    fn join_parents(&mut self, notes: &mut Vec<String>) {
        let count = self.switches.len();
        let mut above: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
        for (index, children) in self.below.iter().enumerate() {
            for &child in children {
                above[child].insert(index);
            }
        }
        if above.iter().all(|parents| parents.len() < 2) {
            return;
        }
        let mut joined = Union::new(count);
        let mut parent: Vec<Option<usize>> = vec![None; count];
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&index| self.level[index]);
        // Groups of a level merge only because of switches below, which come first in this order.
        for index in order {
            if joined.find(index) != index {
                continue;
            }
            let parents: BTreeSet<usize> =
                std::mem::take(&mut above[index]).into_iter().map(|p| joined.find(p)).collect();
            let Some(nearest) = parents.iter().map(|&p| self.level[p]).min() else { continue };
            let (near, far): (Vec<usize>, Vec<usize>) =
                parents.into_iter().partition(|&p| self.level[p] == nearest);
            for pair in near.windows(2) {
                join(&mut joined, &mut above, pair[0], pair[1]);
            }
            let group = joined.find(near[0]);
            above[group].extend(far);
            parent[index] = Some(group);
        }
        self.put_together(&mut joined, &parent, notes);
    }

    /// Keeps the first switch of every group, with the children of all its switches.
    fn put_together(
        &mut self,
        joined: &mut Union,
        parent: &[Option<usize>],
        notes: &mut Vec<String>,
    ) {
        let count = self.switches.len();
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
        for index in 0..count {
            members[joined.find(index)].push(index);
        }
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (index, parent) in parent.iter().enumerate() {
            if let (Some(parent), true) = (parent, members[index].first() == Some(&index)) {
                children[joined.find(*parent)].push(index);
            }
        }
        // Order children as the switches of the group name them; others come last.
        for (group, children) in children.iter_mut().enumerate() {
            let named = members[group].iter().flat_map(|&member| &self.below[member]);
            let mut place = HashMap::new();
            for (at, &child) in named.enumerate() {
                place.entry(joined.find(child)).or_insert(at);
            }
            children.sort_by_key(|child| place.get(child).copied().unwrap_or(usize::MAX));
        }
        let mut groups = members.iter().filter(|members| members.len() > 1);
        if let Some(first) = groups.next() {
            let more = groups.count();
            let names: Vec<&str> = first.iter().map(|&index| &*self.switches[index].name).collect();
            let shown = match names.len() {
                0..=4 => names.join(", "),
                count => format!("{}, ... ({count} switches)", names[..3].join(", ")),
            };
            notes.push(format!(
                "switches {shown} name the same switch as their child{}: they count as one group, {}, because the file does not \
                 say how many cables each has",
                match more {
                    0 => String::new(),
                    1 => ", and so does 1 other group".to_owned(),
                    more => format!(", and so do {more} other groups"),
                },
                names[0]
            ));
        }
        for index in 0..count {
            let is_group = members[index].first() == Some(&index);
            self.below[index] =
                if is_group { std::mem::take(&mut children[index]) } else { vec![] };
        }
        for (index, gone) in self.gone.iter_mut().enumerate() {
            *gone |= members[index].first() != Some(&index);
        }
    }

    /// The remaining switches, which form trees.
    fn listed(mut self) -> Vec<Listed> {
        let names: Vec<String> = self.switches.iter().map(|switch| switch.name.clone()).collect();
        for (switch, below) in self.switches.iter_mut().zip(&self.below) {
            if let Below::Switches(list) = &mut switch.below {
                let left = below.iter().filter(|&&child| !self.gone[child]);
                *list = left.map(|&child| names[child].clone()).collect();
            }
        }
        let gone = self.gone;
        let left = self.switches.into_iter().zip(gone).filter(|(_, gone)| !gone);
        left.map(|(switch, _)| switch).collect()
    }
}

/// Merges two groups under the smaller index.
fn join(joined: &mut Union, above: &mut [BTreeSet<usize>], a: usize, b: usize) {
    let (a, b) = (joined.find(a), joined.find(b));
    if a != b {
        joined.join(a, b);
        let (kept, other) = (a.min(b), a.max(b));
        let more = std::mem::take(&mut above[other]);
        above[kept].extend(more);
    }
}

/// Whether no leaf or block before `index` names a node. If another one does, adds the node and both indices to
/// `several`.
pub(super) fn keep_first(
    node: &str,
    index: usize,
    first_of: &mut HashMap<String, usize>,
    several: &mut Vec<(String, usize, usize)>,
) -> bool {
    let first = first_of.get(node).copied();
    match first {
        None => drop(first_of.insert(node.to_owned(), index)),
        Some(first) if first != index => several.push((node.to_owned(), first, index)),
        Some(_) => {}
    }
    first.is_none()
}

/// The end of a sentence that counts further cases.
pub(super) fn others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => ", and 1 other is alike".to_owned(),
        count => format!(", and {count} others are alike"),
    }
}

/// The level of every switch: 0 for leaves, otherwise one above the highest of its children.
fn levels(switches: &[Listed], below: &[Vec<usize>]) -> Result<Vec<usize>, InputError> {
    let mut waiting: Vec<usize> = below.iter().map(Vec::len).collect();
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); switches.len()];
    for (index, children) in below.iter().enumerate() {
        for &child in children {
            above[child].push(index);
        }
    }
    let mut level = vec![0; switches.len()];
    let mut ready: Vec<usize> = (0..switches.len()).filter(|&index| waiting[index] == 0).collect();
    while let Some(index) = ready.pop() {
        for &parent in &above[index] {
            level[parent] = level[parent].max(level[index] + 1);
            waiting[parent] -= 1;
            if waiting[parent] == 0 {
                ready.push(parent);
            }
        }
    }
    // A switch still waiting has a child that waits too, so walking down from one must meet a cycle.
    let Some(start) = waiting.iter().position(|&count| count > 0) else { return Ok(level) };
    let mut way = Vec::new();
    let mut met = HashMap::new();
    let mut at = start;
    while met.insert(at, way.len()).is_none() {
        way.push(at);
        let next = below[at].iter().copied().find(|&child| waiting[child] > 0);
        at = next.unwrap_or(at);
    }
    let round: Vec<usize> = way[met_at(&way, at)..].to_vec();
    let first = round.iter().copied().min().unwrap_or(at);
    let turn = round.iter().position(|&index| index == first).unwrap_or(0);
    let names = round[turn..].iter().chain(&round[..turn]).chain([&first]);
    let names: Vec<&str> = names.map(|&index| switches[index].name.as_str()).collect();
    Err(cycle(&switches[first].place, &names))
}

fn met_at(way: &[usize], at: usize) -> usize {
    way.iter().position(|&index| index == at).unwrap_or(0)
}
