//! Prints the domains of a machine for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::labels::domain_level;
use super::numbers::{short, thousands};
use crate::fabric::Fabric;

/// Writes the number of domains of each size, their position in the tree, and the block sizes; nothing if there are no
/// domains.
pub(super) fn put_domains(text: &mut String, fabric: &Fabric) {
    if fabric.domains() == 0 {
        return;
    }
    let mut of_size: BTreeMap<(usize, u64), u32> = BTreeMap::new();
    for domain in 0..fabric.domains() {
        let bandwidth = fabric.domain_bandwidth(domain);
        let size = (fabric.domain_nodes(domain).len(), bandwidth.to_bits());
        *of_size.entry(size).or_default() += 1;
    }
    for ((nodes, bandwidth), count) in of_size.into_iter().rev() {
        let (s, are) = if count == 1 { ("", "one node") } else { ("s", "one node each") };
        let size =
            if nodes == 1 { are.to_owned() } else { format!("{} nodes", thousands(nodes as u32)) };
        let bandwidth = short(f64::from_bits(bandwidth) / 1e9);
        let _ = writeln!(
            text,
            "{} domain{s} of {size}, {bandwidth} GB/s of a node inside",
            thousands(count)
        );
    }
    let outside = (0..fabric.nodes()).filter(|&node| fabric.domain(node).is_none()).count() as u32;
    if outside > 0 {
        let _ = writeln!(text, "  {} nodes in no domain", thousands(outside));
    }
    let place = match domain_level(fabric) {
        None => "they do not nest in the tree".to_owned(),
        Some(level) if level == fabric.depth() => "each has whole sites".to_owned(),
        Some(level) => {
            let is_group = fabric.domains() == fabric.groups(level + 1);
            let how = if is_group { "is" } else { "lies in" };
            match level {
                0 => format!("each {how} a leaf of the tree"),
                _ => format!("each {how} a group of level {}", level + 1),
            }
        }
    };
    let _ = writeln!(text, "  {place}");
    if !fabric.block_sizes().is_empty() {
        let sizes: Vec<String> = fabric.block_sizes().iter().map(u32::to_string).collect();
        let _ = writeln!(text, "  block sizes {} nodes", sizes.join(", "));
    }
}
