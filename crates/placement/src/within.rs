//! Places requests that must lie in one group of the machine, for all policies.

use std::sync::Arc;

use topolane_fabric::{NodeIndex, NodeSet};

use crate::level::{Level, Within};
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::request::Request;

/// Places a request in the group that it asks for ([`Request::within`]). A policy that does not read this field is
/// asked for one group of the level after another, the group with the fewest free slots first.
///
/// # Errors
/// The policy's refusal, or no group of a required level has enough slots.
pub fn place_within(
    rule: &dyn Policy,
    request: &Request,
    occupancy: &Occupancy,
) -> Result<Placement, Refusal> {
    let (level, is_required) = match request.within {
        Within::Required(level) => (level, true),
        Within::Preferred(level) => (level, false),
        Within::Unsaid | Within::Anywhere => return rule.place(request, occupancy),
    };
    if rule.reads_within() {
        return rule.place(request, occupancy);
    }
    let mut levels = vec![level];
    if !is_required {
        let above = match level {
            Level::Tree(level) => level.saturating_add(1),
            Level::Domain => 1,
        };
        levels.extend((above..=occupancy.fabric().depth() as u8).map(Level::Tree));
    }
    let mut refused = None;
    for level in levels {
        match in_group(rule, request, occupancy, level) {
            Ok(placement) => return Ok(placement),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    match refused {
        Some(refusal) if is_required => Err(refusal),
        _ => rule.place(request, occupancy),
    }
}

/// Places a request in one group of a level.
fn in_group(
    rule: &dyn Policy,
    request: &Request,
    occupancy: &Occupancy,
    level: Level,
) -> Result<Placement, Refusal> {
    let wanted = request.nodes;
    let room = rooms(request, occupancy, level);
    let most_of = |rooms: &[(u32, NodeSet)]| rooms.iter().map(|&(room, _)| room).max();
    let mut refused = None;
    for (_, nodes) in room.iter().filter(|&&(slots, _)| slots >= wanted) {
        let part = Request { eligible: Some(Arc::new(nodes.clone())), ..request.clone() };
        match rule.place(&part, occupancy) {
            Ok(placement) => return Ok(placement),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        let most = most_of(&rooms(request, occupancy.empty(), level)).unwrap_or(0);
        if most < wanted {
            return Refusal::Never { wanted, most };
        }
        Refusal::NotNow { wanted, free: most_of(&room).unwrap_or(0) }
    }))
}

/// The groups of a level with free slots for a request, fewest first: the number of slots and the nodes that it may
/// use.
fn rooms(request: &Request, occupancy: &Occupancy, level: Level) -> Vec<(u32, NodeSet)> {
    let fabric = occupancy.fabric();
    let free = occupancy.free_slots(request);
    let of = |nodes: &mut dyn Iterator<Item = NodeIndex>| {
        let nodes: Vec<NodeIndex> = nodes.filter(|&node| free.contains(node)).collect();
        let slots = nodes.iter().map(|&node| free.count(0, node)).fold(0, u32::saturating_add);
        (slots, NodeSet::of(fabric.nodes(), nodes))
    };
    let mut rooms: Vec<(u32, NodeSet)> = match level {
        Level::Domain => (0..fabric.domains())
            .map(|domain| of(&mut fabric.domain_nodes(domain).iter().copied()))
            .collect(),
        Level::Tree(0) => (0..fabric.nodes()).map(|node| of(&mut std::iter::once(node))).collect(),
        Level::Tree(level) if usize::from(level) <= fabric.depth() => {
            let groups = 0..fabric.groups(level.into());
            groups.map(|group| of(&mut fabric.node_range(level.into(), group))).collect()
        }
        Level::Tree(_) => Vec::new(),
    };
    rooms.retain(|&(slots, _)| slots > 0);
    rooms.sort_by_key(|&(slots, _)| slots);
    rooms
}
