//! The channels of the links of nodes where nodes have two each: numbered `2 * node` to its switch, and then from it.

use crate::fabric::Fabric;
use crate::ids::NodeIndex;
use crate::link::{Channel, Link, link_of};

/// The bandwidth of these channels, in bytes per second: of all links of a node together.
pub(super) fn node_capacity(fabric: &Fabric) -> Vec<f64> {
    let of_node = |node: NodeIndex| {
        let bandwidth: f64 = fabric.uplinks(0, node).map(|link| fabric.bandwidth(link)).sum();
        [bandwidth; 2]
    };
    (0..fabric.nodes()).flat_map(of_node).collect()
}

/// The links of one of these channels.
pub(super) fn node_links(fabric: &Fabric, channel: Channel) -> Vec<Link> {
    let Link { cable: node, direction } = link_of(channel);
    fabric.uplinks(0, node).map(|cable| Link { cable, direction }).collect()
}

/// The channels on which a node sends and another receives; `None` if all links of one of them are missing.
pub(super) fn ends(capacity: &[f64], from: NodeIndex, to: NodeIndex) -> Option<(Channel, Channel)> {
    let (up, down) = (2 * from, 2 * to + 1);
    (capacity[up as usize] > 0.0 && capacity[down as usize] > 0.0).then_some((up, down))
}
