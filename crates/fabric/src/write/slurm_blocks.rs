//! Writes Slurm's `topology.conf` for `topology/block`, and `topology.yaml`.

use std::fmt::Write;

use super::names::{NameLimits, Names};
use super::slurm_topology::each_switch;
use crate::fabric::Fabric;
use crate::hostlist::compress;

/// Returns the domains as blocks, in their order, and the block sizes if configured. Nodes outside all domains are
/// skipped.
pub fn slurm_blocks(fabric: &Fabric) -> String {
    slurm_blocks_named(fabric, &mut Names::new(NameLimits::SLURM))
}

pub(super) fn slurm_blocks_named(fabric: &Fabric, names: &mut Names) -> String {
    let mut text = String::new();
    if !fabric.block_sizes().is_empty() {
        let _ = writeln!(text, "BlockSizes={}", sizes(fabric, ","));
    }
    names.begin(NameLimits::SLURM);
    let nodes = names.nodes(fabric);
    for (name, nodes) in blocks(fabric, &nodes, names) {
        let _ = writeln!(text, "BlockName={name} Nodes={nodes}");
    }
    text
}

/// Returns the fabric as a `topology.yaml`: the tree as the default topology `tree`, the domains as the topology
/// `blocks`.
pub fn slurm_yaml(fabric: &Fabric) -> String {
    slurm_yaml_named(fabric, &mut Names::new(NameLimits::SLURM))
}

pub(super) fn slurm_yaml_named(fabric: &Fabric, names: &mut Names) -> String {
    let mut text =
        "---\n- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n".to_owned();
    each_switch(fabric, names, |name, is_leaf, below| {
        let key = if is_leaf { "nodes" } else { "children" };
        let _ = writeln!(text, "      - switch: \"{name}\"\n        {key}: \"{below}\"");
    });
    if fabric.domains() == 0 {
        return text;
    }
    text.push_str("- topology: blocks\n  block:\n");
    if !fabric.block_sizes().is_empty() {
        let _ = writeln!(text, "    block_sizes: [{}]", sizes(fabric, ", "));
    }
    text.push_str("    blocks:\n");
    // The tree has already noted which node names were changed.
    let nodes = Names::new(NameLimits::SLURM).nodes(fabric);
    for (name, nodes) in blocks(fabric, &nodes, names) {
        let _ = writeln!(text, "      - block: \"{name}\"\n        nodes: \"{nodes}\"");
    }
    text
}

fn sizes(fabric: &Fabric, separator: &str) -> String {
    let sizes: Vec<String> = fabric.block_sizes().iter().map(u32::to_string).collect();
    sizes.join(separator)
}

/// The name and hostlist of every domain.
fn blocks(fabric: &Fabric, nodes: &[String], names: &mut Names) -> Vec<(String, String)> {
    names.begin(NameLimits::SLURM);
    let block = |domain| {
        let own = fabric.domain_nodes(domain).iter().map(|&node| nodes[node as usize].as_str());
        (names.unique("domain", fabric.domain_name(domain), "block"), compress(own))
    };
    (0..fabric.domains()).map(block).collect()
}
