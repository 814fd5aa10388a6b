//! Builds a machine from blocks of nodes, as in Slurm's topology/block.

use std::collections::HashMap;

use super::{Read, UNNAMED};
use crate::description::{
    Cabling, Children, Description, DomainDescription, Group, NodeDescription, SiteDescription,
};
use crate::error::{InputError, shown};
use crate::fabric::check_sizes;
use crate::hostlist::{MOST_LETTERS, MOST_NAMES, expand};
use crate::node_kind::NodeKind;
use crate::presets::{NVLINK, QDR};

use super::slurm_lines::LinePosition;
use super::slurm_tree::{keep_first, others};

/// A block as a file describes it.
pub(super) struct DescribedBlock {
    pub name: String,
    /// The nodes of the block, as a hostlist.
    pub nodes: String,
    pub place: LinePosition,
}

/// The block sizes in a file, and their position.
pub(super) struct DescribedSizes {
    pub sizes: Vec<u32>,
    pub place: LinePosition,
}

impl Default for DescribedSizes {
    fn default() -> Self {
        DescribedSizes { sizes: Vec::new(), place: 0.into() }
    }
}

impl DescribedSizes {
    /// Parses sizes. They may be in any order, except that Slurm takes the first as the base block.
    pub fn of(words: &[&str], place: LinePosition) -> Result<DescribedSizes, InputError> {
        let mut sizes = Vec::with_capacity(words.len());
        for word in words {
            let size = word.trim().parse().map_err(|_| {
                place.refuse(format!("block size {} is not a number of nodes", shown(word)))
            })?;
            sizes.push(size);
        }
        let base = sizes.first().copied();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.first().copied() != base {
            let (first, smallest) = (base.unwrap_or_default(), sizes[0]);
            let message =
                format!("block size {smallest} is smaller than the base block of {first}");
            return Err(place.refuse(message));
        }
        check_sizes(&sizes).map_err(|message| place.refuse(message))?;
        Ok(DescribedSizes { sizes, place })
    }
}

/// Returns a machine in which each block is a domain and also a leaf of an assumed tree with one root. Blocks keep
/// their order, because Slurm joins consecutive blocks. A node belongs to the first block that names it; a block
/// without nodes is skipped.
///
/// # Errors
/// With its line: two blocks with the same name, too many nodes, or no block with a node.
pub(super) fn blocks(blocks: &[DescribedBlock], sizes: DescribedSizes) -> Result<Read, InputError> {
    let mut places: HashMap<&str, &LinePosition> = HashMap::new();
    let mut block_of: HashMap<String, usize> = HashMap::new();
    let (mut groups, mut domains) = (Vec::new(), Vec::new());
    let (mut several, mut empty) = (Vec::new(), Vec::new());
    let (mut count, mut letters) = (0, 0);
    for (index, block) in blocks.iter().enumerate() {
        let refuse =
            |what: String| Err(block.place.refuse(format!("block {} {what}", shown(&block.name))));
        if let Some(first) = places.insert(&block.name, &block.place) {
            return refuse(format!("stands on {first} already"));
        }
        let mut nodes = expand(&block.nodes).map_err(|error| block.place.of(error))?;
        count += nodes.len();
        letters += nodes.iter().map(String::len).sum::<usize>();
        if count > MOST_NAMES || letters > MOST_LETTERS {
            return refuse("makes the machine too large".to_owned());
        }
        nodes.retain(|node| keep_first(node, index, &mut block_of, &mut several));
        if nodes.is_empty() {
            empty.push((index, domains.len()));
            continue;
        }
        groups.push(leaf(&block.name, &nodes));
        domains.push(DomainDescription { name: block.name.clone(), nodes, bandwidth: NVLINK });
    }
    if groups.is_empty() {
        return Err(match blocks.first() {
            None => InputError::whole("there is no block"),
            Some(DescribedBlock { name, place, .. }) => {
                place.refuse(format!("block {} has no nodes, and no other has", shown(name)))
            }
        });
    }
    let mut notes = short_blocks(&domains, &sizes);
    if let Some((node, first, other)) = several.first() {
        let [first, other] = [first, other].map(|&index| &blocks[index]);
        let (name, also) = (shown(&first.name), shown(&other.name));
        notes.push(format!(
            "node {} is in block {name} and in {also} of {}{}: a node counts in the first block that names it",
            shown(node),
            other.place,
            others(several.len() - 1)
        ));
    }
    if let Some(&(index, _)) = empty.first() {
        let DescribedBlock { name, place, .. } = &blocks[index];
        // The blocks after a skipped one move up, and Slurm joins blocks by position.
        let moved = empty.iter().any(|&(_, before)| before < domains.len());
        let moved = if moved { ". Blocks after it join others than in Slurm" } else { "" };
        notes.push(format!(
            "block {} of {place} has no nodes{}: it is skipped, as no job can use it{moved}. Slurm takes it since 25.05, and \
             24.11 refuses it",
            shown(name),
            others(empty.len() - 1)
        ));
    }
    let description = Description {
        name: UNNAMED.to_owned(),
        sites: vec![site(groups)],
        wans: Vec::new(),
        kinds: vec![NodeKind::default()],
        domains,
        block_sizes: sizes.sizes,
        ..Description::default()
    };
    Ok(Read::with_notes(description, notes))
}

pub(super) fn leaf(name: &str, nodes: &[String]) -> Group {
    let node = |name: &String| NodeDescription { name: name.clone(), kind: 0 };
    let children = Children::Nodes(nodes.iter().map(node).collect());
    Group { name: name.to_owned(), switches: Vec::new(), children }
}

/// Returns a site with these leaves; a single leaf is its root.
pub(super) fn site(mut leaves: Vec<Group>) -> SiteDescription {
    let cabling = Cabling::new(1, 1, QDR);
    let (root, depth) = if leaves.len() == 1 {
        (leaves.remove(0), 1)
    } else {
        let children = Children::Groups(leaves);
        (Group { name: UNNAMED.to_owned(), switches: Vec::new(), children }, 2)
    };
    SiteDescription { root, cabling: vec![cabling; depth], missing: Vec::new() }
}

/// Warnings about what Slurm 24.11 would refuse and later releases accept.
fn short_blocks(domains: &[DomainDescription], sizes: &DescribedSizes) -> Vec<String> {
    let Some(&base) = sizes.sizes.first() else { return Vec::new() };
    let mut short = domains.iter().filter(|domain| domain.nodes.len() < base as usize);
    let Some(first) = short.next() else { return Vec::new() };
    let (name, has) = (shown(&first.name), first.nodes.len());
    let others = match short.count() {
        0 => String::new(),
        count => format!(", and so do {count} others"),
    };
    vec![format!(
        "block {name} has {has} nodes, fewer than the base block of {base} of {}{others}: Slurm 24.11 refuses this file",
        sizes.place
    )]
}
