//! Which group of the machine a request is to lie in, as systems ask that let every job say so.

use std::fmt;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, NodeSet};

use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::request::Request;

/// A kind of group of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Groups of this level of the tree: 0 for nodes, 1 for leaves, 2 for pods.
    Tree(u8),
    /// Domains ([`Fabric::domain`](topolane_fabric::Fabric::domain)).
    Domain,
}

/// In which group a request is to lie, for rules that ask each request: Kueue's `required`, `preferred` and `unconstrained`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Within {
    /// The request does not say; the rule has a default.
    #[default]
    Unsaid,
    /// In any groups.
    Anywhere,
    /// In one group of the level or, where none has room, of the lowest level above that has.
    Preferred(Level),
    /// In one group of the level, or not at all.
    Required(Level),
}

/// What a request is to lie in, in words that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotWithin(String);

impl fmt::Display for NotWithin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is neither unconstrained nor preferred:LEVEL nor required:LEVEL, where LEVEL is node, leaf, pod, domain \
             or the number of a level",
            self.0
        )
    }
}

impl std::error::Error for NotWithin {}

/// A level that a machine does not have, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLevel(String);

impl fmt::Display for NoLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoLevel {}

impl Level {
    /// Reads `node`, `leaf`, `pod`, `domain` or the number of a level of the tree; `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "node" => Level::Tree(0),
            "leaf" => Level::Tree(1),
            "pod" => Level::Tree(2),
            "domain" => Level::Domain,
            number => Level::Tree(number.parse().ok()?),
        })
    }

    /// That a machine has the level.
    ///
    /// # Errors
    ///
    /// A sentence that names the machine.
    pub fn check(self, fabric: &Fabric) -> Result<(), NoLevel> {
        let (name, top) = (fabric.name(), fabric.depth());
        match self {
            Level::Tree(level) if usize::from(level) > top => Err(NoLevel(format!(
                "machine {name} has levels 0 (node), 1 (leaf) to {top}, and no level {level}"
            ))),
            Level::Domain if fabric.domains() == 0 => {
                Err(NoLevel(format!("machine {name} has no domains")))
            }
            _ => Ok(()),
        }
    }
}

impl Within {
    /// That a machine has the level that is named.
    ///
    /// # Errors
    ///
    /// A sentence that names the machine.
    pub fn check(self, fabric: &Fabric) -> Result<(), NoLevel> {
        match self {
            Within::Preferred(level) | Within::Required(level) => level.check(fabric),
            Within::Unsaid | Within::Anywhere => Ok(()),
        }
    }
}

impl std::str::FromStr for Within {
    type Err = NotWithin;

    /// Reads `unconstrained`, `preferred:LEVEL` or `required:LEVEL`; LEVEL is `node`, `leaf`, `pod`, `domain` or a number.
    fn from_str(text: &str) -> Result<Self, NotWithin> {
        let within = match text.split_once(':') {
            None if text == "unconstrained" => Some(Within::Anywhere),
            Some(("preferred", level)) => Level::parse(level).map(Within::Preferred),
            Some(("required", level)) => Level::parse(level).map(Within::Required),
            _ => None,
        };
        within.ok_or_else(|| NotWithin(text.chars().take(60).collect()))
    }
}

/// Places a request in the group that it is to lie in, also for rules that do not read [`Request::within`]: those are asked
/// for one group of the level after the other, the one with fewest free slots first.
///
/// # Errors
/// The rule's refusal; that no group of a required level has enough slots.
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

/// The groups of a level that have free slots for a request, fewest first, with those of their nodes that it may use.
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
