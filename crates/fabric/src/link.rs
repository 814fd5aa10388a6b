//! The directed links of a route, and their numbers as channels.

use crate::ids::CableId;

/// The direction in which a link is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the node towards the core (for a WAN link: from its first site to its second).
    Up,
    /// From the core towards the node.
    Down,
}

/// One directed link of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The cable.
    pub cable: CableId,
    /// The direction of the traffic.
    pub direction: Direction,
}

/// Links from one node to another, in order; empty if both are the same node.
pub type Route = Vec<Link>;

/// What traffic contends for: one direction of a cable, or of all uplinks of a group if traffic spreads over them.
pub type Channel = u32;

/// The channel for one direction of a link.
pub(crate) fn channel_of(link: Link) -> Channel {
    2 * link.cable + Channel::from(link.direction == Direction::Down)
}

/// The link of a channel made by [`channel_of`].
pub(crate) fn link_of(channel: Channel) -> Link {
    let direction = if channel.is_multiple_of(2) { Direction::Up } else { Direction::Down };
    Link { cable: channel / 2, direction }
}
