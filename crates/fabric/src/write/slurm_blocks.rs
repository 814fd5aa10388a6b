//! Slurm's `topology.conf` for `topology/block`, and `topology.yaml`.

use std::fmt::Write;

use super::slurm_topology::slurm_topology;
use super::wiring::Names;
use crate::description::DomainDescription;
use crate::fabric::Fabric;
use crate::hostlist::{compress, plain};

/// The domains as blocks, in their order, and the block sizes, if they were chosen. Nodes that are in no domain are left out.
pub fn slurm_blocks(fabric: &Fabric) -> String {
    let mut text = String::new();
    if !fabric.block_sizes().is_empty() {
        let _ = writeln!(text, "BlockSizes={}", sizes(fabric, ","));
    }
    for (name, nodes) in blocks(fabric) {
        let _ = writeln!(text, "BlockName={name} Nodes={nodes}");
    }
    text
}

/// The fabric as a `topology.yaml`: the tree as the default topology `tree`, the domains as the topology `blocks`.
pub fn slurm_yaml(fabric: &Fabric) -> String {
    let mut text =
        "---\n- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n".to_owned();
    for line in slurm_topology(fabric).lines() {
        let words = line.split_once(' ').map(|(name, below)| (name.split_once('='), below));
        let Some((Some((_, name)), below)) = words else { continue };
        let _ = writeln!(text, "      - switch: \"{name}\"");
        if let Some((key, hosts)) = below.split_once('=') {
            let key = if key == "Nodes" { "nodes" } else { "children" };
            let _ = writeln!(text, "        {key}: \"{hosts}\"");
        }
    }
    if fabric.domains() == 0 {
        return text;
    }
    text.push_str("- topology: blocks\n  block:\n");
    if !fabric.block_sizes().is_empty() {
        let _ = writeln!(text, "    block_sizes: [{}]", sizes(fabric, ", "));
    }
    text.push_str("    blocks:\n");
    for (name, nodes) in blocks(fabric) {
        let _ = writeln!(text, "      - block: \"{name}\"\n        nodes: \"{nodes}\"");
    }
    text
}

fn sizes(fabric: &Fabric, separator: &str) -> String {
    let sizes: Vec<String> = fabric.block_sizes().iter().map(u32::to_string).collect();
    sizes.join(separator)
}

/// Name and hostlist of every domain.
fn blocks(fabric: &Fabric) -> Vec<(String, String)> {
    let mut taken = Names::default();
    let block = |DomainDescription { name, nodes, .. }: DomainDescription| {
        let nodes: Vec<String> = nodes.iter().map(|node| plain(node)).collect();
        (taken.unique(&name, "block"), compress(nodes.iter().map(String::as_str)))
    };
    fabric.description().domains.into_iter().map(block).collect()
}
