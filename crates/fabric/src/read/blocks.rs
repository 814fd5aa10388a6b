//! Blocks of nodes, as Slurm's topology/block has them, to a machine.

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

use super::assemble::at_line;

/// A block as a file describes it.
pub(super) struct Block {
    pub name: String,
    /// A hostlist.
    pub nodes: String,
    pub line: usize,
}

/// The block sizes of a file and the line they stand on.
#[derive(Default)]
pub(super) struct Sizes {
    pub sizes: Vec<u32>,
    pub line: usize,
}

impl Sizes {
    /// Sizes in any order, the base block first, as Slurm takes them.
    pub fn of(words: &[&str], line: usize) -> Result<Sizes, InputError> {
        let mut sizes = Vec::with_capacity(words.len());
        for word in words {
            let size = word.trim().parse().map_err(|_| {
                InputError::at(line, format!("block size {} is not a number of nodes", shown(word)))
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
            return Err(InputError::at(line, message));
        }
        check_sizes(&sizes).map_err(|message| InputError::at(line, message))?;
        Ok(Sizes { sizes, line })
    }
}

/// The machine of blocks: each is a domain, and a leaf of a tree that is assumed, under one root. Their order stays: Slurm
/// joins blocks that follow each other.
///
/// # Errors
/// With its line: a block without nodes, two of one name, a node in two, too many nodes, no block.
pub(super) fn blocks(blocks: &[Block], sizes: Sizes) -> Result<Read, InputError> {
    let mut lines: HashMap<&str, usize> = HashMap::new();
    let mut block_of: HashMap<String, usize> = HashMap::new();
    let (mut groups, mut domains) = (Vec::new(), Vec::new());
    let mut letters = 0;
    for (index, block) in blocks.iter().enumerate() {
        let refuse = |what: String| {
            Err(InputError::at(block.line, format!("block {} {what}", shown(&block.name))))
        };
        if let Some(first) = lines.insert(&block.name, block.line) {
            return refuse(format!("stands on line {first} already"));
        }
        let nodes = expand(&block.nodes).map_err(|error| at_line(error, block.line))?;
        if nodes.is_empty() {
            return refuse("has no nodes".to_owned());
        }
        letters += nodes.iter().map(String::len).sum::<usize>();
        if block_of.len() + nodes.len() > MOST_NAMES || letters > MOST_LETTERS {
            return refuse("makes the machine too large".to_owned());
        }
        for node in &nodes {
            if let Some(other) = block_of.insert(node.clone(), index) {
                let Block { name, line, .. } = &blocks[other];
                return refuse(format!(
                    "names node {}, which is in block {} of line {line} already",
                    shown(node),
                    shown(name)
                ));
            }
        }
        groups.push(leaf(&block.name, &nodes));
        domains.push(DomainDescription { name: block.name.clone(), nodes, bandwidth: NVLINK });
    }
    if groups.is_empty() {
        return Err(InputError::whole("there is no block"));
    }
    let notes = short_blocks(&domains, &sizes);
    let description = Description {
        name: UNNAMED.to_owned(),
        sites: vec![site(groups)],
        wans: Vec::new(),
        kinds: vec![NodeKind::default()],
        domains,
        block_sizes: sizes.sizes,
    };
    Ok(Read::with_notes(description, notes))
}

pub(super) fn leaf(name: &str, nodes: &[String]) -> Group {
    let node = |name: &String| NodeDescription { name: name.clone(), kind: 0 };
    let children = Children::Nodes(nodes.iter().map(node).collect());
    Group { name: name.to_owned(), switches: Vec::new(), children }
}

/// A site of leaves: one alone is its root.
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

/// What Slurm 24.11 would refuse and later releases accept.
fn short_blocks(domains: &[DomainDescription], sizes: &Sizes) -> Vec<String> {
    let Some(&base) = sizes.sizes.first() else { return Vec::new() };
    let mut short = domains.iter().filter(|domain| domain.nodes.len() < base as usize);
    let Some(first) = short.next() else { return Vec::new() };
    let (name, has) = (shown(&first.name), first.nodes.len());
    let others = match short.count() {
        0 => String::new(),
        count => format!(", and so do {count} others"),
    };
    vec![format!(
        "block {name} has {has} nodes, fewer than the base block of {base} of line {}{others}: Slurm 24.11 refuses this file",
        sizes.line
    )]
}
