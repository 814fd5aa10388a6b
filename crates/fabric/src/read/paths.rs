//! Builds a tree from the path to each node, as labels of nodes give it.

use std::collections::HashMap;

use super::UNNAMED;
use crate::check::DEEPEST;
use crate::description::{Cabling, Children, Group, NodeDescription, SiteDescription};
use crate::error::{InputError, shown};
use crate::presets::QDR;

/// The path to a node: the switches above it from the top down.
pub(super) struct Way<'a> {
    pub node: &'a str,
    pub switches: Vec<&'a str>,
    /// Index of the node's kind.
    pub kind: u32,
    pub line: usize,
}

/// Refuses paths that put a switch under two parents.
pub(super) fn check_parents(ways: &[Way]) -> Result<(), InputError> {
    let mut above: HashMap<&str, (Option<&str>, &Way)> = HashMap::new();
    let hangs = |parent: Option<&str>| match parent {
        Some(parent) => format!("hangs on {}", shown(parent)),
        None => "hangs on no other".to_owned(),
    };
    for way in ways {
        let mut parent = None;
        for switch in &way.switches {
            let (known, first) = *above.entry(switch).or_insert((parent, way));
            if known != parent {
                if first.line == way.line {
                    return Err(InputError::at(
                        way.line,
                        format!(
                            "node {} has switch {} above itself: one of its levels names it again",
                            shown(way.node),
                            shown(switch)
                        ),
                    ));
                }
                return Err(InputError::at(
                    way.line,
                    format!(
                        "node {} says that switch {} {}, node {} of line {} says that it {}",
                        shown(way.node),
                        shown(switch),
                        hangs(parent),
                        shown(first.node),
                        first.line,
                        hangs(known)
                    ),
                ));
            }
            parent = Some(switch);
        }
    }
    Ok(())
}

/// A switch of the tree under construction.
#[derive(Default)]
struct PathSwitch<'a> {
    name: &'a str,
    below: Vec<usize>,
    nodes: Vec<NodeDescription>,
}

/// Returns the tree of the paths. A switch is identified by its whole path from the top. Groups and nodes are in order
/// of first mention. If there are several switches at the top, a root is added above them. Every level has one parent
/// and one cable of QDR's 4 GB/s.
///
/// # Errors
/// With its line: a path of no or too many switches, or a switch with both nodes and switches below.
pub(super) fn tree(ways: &[Way]) -> Result<SiteDescription, InputError> {
    let mut places = vec![PathSwitch { name: UNNAMED, ..PathSwitch::default() }];
    let mut known: HashMap<(usize, &str), usize> = HashMap::new();
    for way in ways {
        // One level is reserved for a root above all.
        if way.switches.is_empty() || way.switches.len() >= DEEPEST {
            let message = format!(
                "node {} lies below {} switches, not 1 to {}",
                shown(way.node),
                way.switches.len(),
                DEEPEST - 1
            );
            return Err(InputError::at(way.line, message));
        }
        let mut at = 0;
        for name in &way.switches {
            let next = *known.entry((at, name)).or_insert(places.len());
            if next == places.len() {
                places.push(PathSwitch { name, ..PathSwitch::default() });
                places[at].below.push(next);
            }
            at = next;
        }
        places[at].nodes.push(NodeDescription { name: way.node.to_owned(), kind: way.kind });
        let is_mixed = |place: &PathSwitch| !place.below.is_empty() && !place.nodes.is_empty();
        let parent = way.switches.len().checked_sub(2).map(|_| parent_of(&known, way));
        for place in [Some(at), parent].into_iter().flatten().map(|index| &places[index]) {
            if is_mixed(place) {
                let message = format!(
                    "switch {} has both nodes, such as {}, and switches below it",
                    shown(place.name),
                    shown(place.nodes.first().map_or("", |node| &node.name))
                );
                return Err(InputError::at(way.line, message));
            }
        }
    }
    let top = match places[0].below[..] {
        [only] => only,
        _ => 0,
    };
    let (root, depth) = group(&mut places, top);
    let cabling = Cabling::new(1, 1, QDR);
    Ok(SiteDescription { root, cabling: vec![cabling; depth], missing: Vec::new() })
}

/// The position of the switch above the last one of a path.
fn parent_of(known: &HashMap<(usize, &str), usize>, way: &Way) -> usize {
    let above = &way.switches[..way.switches.len().saturating_sub(1)];
    above.iter().fold(0, |at, name| known.get(&(at, *name)).copied().unwrap_or_default())
}

/// The group at a position, and the number of its levels.
fn group(places: &mut [PathSwitch], index: usize) -> (Group, usize) {
    let place = std::mem::take(&mut places[index]);
    let name = place.name.to_owned();
    if place.below.is_empty() {
        return (Group { name, switches: Vec::new(), children: Children::Nodes(place.nodes) }, 1);
    }
    let below: Vec<(Group, usize)> =
        place.below.iter().map(|&child| group(places, child)).collect();
    let depth = 1 + below.iter().map(|(_, depth)| *depth).max().unwrap_or_default();
    let children = Children::Groups(below.into_iter().map(|(group, _)| group).collect());
    (Group { name, switches: Vec::new(), children }, depth)
}
