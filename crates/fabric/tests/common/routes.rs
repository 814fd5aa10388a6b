//! What a routing does with the bytes of a message.

use std::collections::BTreeMap;

use topolane_fabric::{Channel, Direction, Fabric, Routing};

/// The channels from one node to another, each with the part of the bytes that it carries; one may come several times.
pub fn parts(routing: &dyn Routing, from: u32, to: u32) -> Vec<(Channel, f64)> {
    let (mut path, mut parts) = (Vec::new(), Vec::new());
    routing.path(from, to, &mut path).unwrap();
    let splits = routing.splits();
    for entry in path {
        splits.each(entry, |channel, part| parts.push((channel, part)));
    }
    parts
}

/// A node or a switch. Nodes are numbered from 0, switches after them.
fn ends(fabric: &Fabric, cable: u32, switch_of: &dyn Fn(u32) -> u32) -> (u32, u32) {
    if let Some(wired) = fabric.wired_cable(cable) {
        return (fabric.nodes() + wired.between.0, fabric.nodes() + wired.between.1);
    }
    (cable, fabric.nodes() + switch_of(fabric.group(1, cable)))
}

/// What enters a switch leaves it: all bytes leave the sender and reach the receiver, and no switch gains or loses any.
/// `switch_of` has the switch of a leaf. A channel has the bandwidth of its links.
pub fn keeps_traffic(
    routing: &dyn Routing,
    (from, to): (u32, u32),
    switch_of: &dyn Fn(u32) -> u32,
) -> Result<(), String> {
    let fabric = routing.fabric();
    let mut gain: BTreeMap<u32, f64> = BTreeMap::new();
    for (channel, part) in parts(routing, from, to) {
        let links = routing.links(channel);
        let all: f64 = links.iter().map(|link| fabric.bandwidth(link.cable)).sum();
        if part <= 0.0 || links.is_empty() || (all - routing.capacity(channel)).abs() > 1e-9 * all {
            return Err(format!(
                "channel {channel} has {links:?} of {all} B/s and the part {part}"
            ));
        }
        for link in links {
            let own = part * fabric.bandwidth(link.cable) / all;
            let (lower, upper) = ends(fabric, link.cable, switch_of);
            let is_up = link.direction == Direction::Up;
            let (source, target) = if is_up { (lower, upper) } else { (upper, lower) };
            *gain.entry(source).or_default() -= own;
            *gain.entry(target).or_default() += own;
        }
    }
    for (place, gain) in gain {
        let expected = f64::from(place == to) - f64::from(place == from);
        if (gain - expected).abs() > 1e-9 {
            return Err(format!("{}: {place} gains {gain}, not {expected}", routing.name()));
        }
    }
    Ok(())
}
