//! Routing by forwarding tables: every switch has a port for each destination.

use std::fmt;
use std::sync::Arc;

use super::{Routing, Unreachable};
use crate::fabric::Fabric;
use crate::ids::NodeIndex;
use crate::link::Channel;

/// The table entry for a destination without a port, as in `InfiniBand`.
pub(crate) const NO_PORT: u8 = 255;

/// Routing by the tables that a subnet manager installed. A channel is one direction of one link. Routes follow the
/// tables, whether these use shortest paths or not. A node with several links sends and receives by its first.
#[derive(Clone)]
pub struct Tables {
    fabric: Arc<Fabric>,
    /// `out[to * switches + switch]`: the output port; [`NO_PORT`] if there is none.
    out: Box<[u8]>,
    switches: usize,
    /// `hops[switch * PORTS + port]`: the step through that port.
    hops: Box<[Option<Hop>]>,
    /// The step from every node to its first switch.
    first: Box<[Hop]>,
    /// Bandwidth of every link in each direction, in bytes per second.
    bandwidth: Box<[f64]>,
}

/// The number of ports of a switch: a port number is a byte.
pub(crate) const PORTS: usize = 256;

/// One step of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    pub channel: Channel,
    pub to: NextDevice,
}

/// The device that a step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextDevice {
    Switch(u32),
    Node(NodeIndex),
}

/// Why the tables do not lead to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteFault {
    /// A switch has no port for the node.
    Drops,
    /// There is no cable at the port.
    NoCable,
    /// Another node, or another link of the same node, is at the port.
    Astray(NodeIndex),
    /// Packets to the node return to the same switch.
    Loops,
}

/// The end of a walk through the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkEnd {
    Unknown,
    /// On the walk that is in progress.
    Here,
    Arrives,
    Fails(u32, RouteFault),
}

impl Tables {
    /// Returns the routing of these tables; see the fields for the layout.
    pub(crate) fn new(
        fabric: Arc<Fabric>,
        out: Vec<u8>,
        hops: Vec<Option<Hop>>,
        first: Vec<Hop>,
    ) -> Tables {
        let bandwidth = (0..fabric.links()).map(|link| fabric.bandwidth(link)).collect();
        Tables {
            fabric,
            out: out.into(),
            switches: hops.len() / PORTS,
            hops: hops.into(),
            first: first.into(),
            bandwidth,
        }
    }

    /// The port by which a switch sends to a node.
    pub(crate) fn port(&self, switch: u32, to: NodeIndex) -> u8 {
        self.out[to as usize * self.switches + switch as usize]
    }

    /// The step from a switch towards a node.
    pub(crate) fn step(&self, switch: u32, to: NodeIndex) -> Result<Hop, RouteFault> {
        let port = self.port(switch, to);
        if port == NO_PORT {
            return Err(RouteFault::Drops);
        }
        let hop =
            self.hops[switch as usize * PORTS + usize::from(port)].ok_or(RouteFault::NoCable)?;
        match hop.to {
            // A node only accepts packets on its first link, which has the address.
            NextDevice::Node(node)
                if node != to || hop.channel / 2 != self.first[to as usize].channel / 2 =>
            {
                Err(RouteFault::Astray(node))
            }
            _ => Ok(hop),
        }
    }

    /// The first switch and destination for which the tables fail: they loop, or do not lead from a node to another of
    /// its site. O(switches) per destination.
    pub(crate) fn fault(&self) -> Option<(u32, NodeIndex, RouteFault)> {
        let fabric = &self.fabric;
        let site = |node| fabric.group(fabric.depth(), node);
        // For each switch, the site of the nodes that send to it. There is at most one, because cables connect them.
        let mut begins = vec![None; self.switches];
        for (node, hop) in (0..).zip(&self.first) {
            if let NextDevice::Switch(switch) = hop.to {
                begins[switch as usize] = Some(site(node));
            }
        }
        let mut ends = vec![WalkEnd::Unknown; self.switches];
        for to in 0..fabric.nodes() {
            ends.fill(WalkEnd::Unknown);
            for start in 0..self.switches as u32 {
                match self.walk(start, to, &mut ends) {
                    WalkEnd::Fails(switch, RouteFault::Loops) => {
                        return Some((switch, to, RouteFault::Loops));
                    }
                    WalkEnd::Fails(switch, fault) if begins[start as usize] == Some(site(to)) => {
                        return Some((switch, to, fault));
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// The end of the route from a switch to a node. Records the end for all switches on the route.
    fn walk(&self, start: u32, to: NodeIndex, ends: &mut [WalkEnd]) -> WalkEnd {
        let mut at = start;
        let end = loop {
            match ends[at as usize] {
                WalkEnd::Unknown => ends[at as usize] = WalkEnd::Here,
                WalkEnd::Here => break WalkEnd::Fails(at, RouteFault::Loops),
                known => break known,
            }
            match self.step(at, to) {
                Ok(Hop { to: NextDevice::Switch(next), .. }) => at = next,
                Ok(_) => break WalkEnd::Arrives,
                Err(fault) => break WalkEnd::Fails(at, fault),
            }
        };
        at = start;
        while ends[at as usize] == WalkEnd::Here {
            ends[at as usize] = end;
            match self.step(at, to) {
                Ok(Hop { to: NextDevice::Switch(next), .. }) => at = next,
                _ => break,
            }
        }
        end
    }

    /// The switches of the loop through which packets from `start` to a node go, `start` first.
    pub(crate) fn circle(&self, start: u32, to: NodeIndex) -> Vec<u32> {
        let mut passed = vec![start];
        while let Ok(Hop { to: NextDevice::Switch(next), .. }) =
            self.step(passed[passed.len() - 1], to)
        {
            if next == start || passed.len() > self.switches {
                break;
            }
            passed.push(next);
        }
        passed
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tables of {} switches", self.switches)
    }
}

impl Routing for Tables {
    fn name(&self) -> &'static str {
        "tables"
    }

    fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.bandwidth[channel as usize / 2]
    }

    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if from == to || self.fabric.share_domain(from, to) {
            return Ok(());
        }
        let before = path.len();
        let mut hop = self.first[from as usize];
        loop {
            path.push(hop.channel);
            let NextDevice::Switch(switch) = hop.to else { return Ok(()) };
            match self.step(switch, to) {
                Ok(next) => hop = next,
                Err(_) => break,
            }
        }
        path.truncate(before);
        Err(Unreachable { from, to })
    }
}
