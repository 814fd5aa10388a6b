//! Routing by forwarding tables: at every switch the port that its table gives for the destination.

use std::fmt;
use std::sync::Arc;

use super::{Routing, Unreachable};
use crate::fabric::{Fabric, NodeIndex};
use crate::link::Channel;

/// Table entry for a destination that the switch has no port for, as in `InfiniBand`.
pub(crate) const NO_PORT: u8 = 255;

/// Routing by the tables that a subnet manager installed. A channel is one direction of one link.
/// A route goes wherever the tables send it, over shortest routes or not; a node with several links
/// sends by its first and is addressed there.
#[derive(Clone)]
pub struct Tables {
    fabric: Arc<Fabric>,
    /// `out[to * switches + switch]`: the port out, [`NO_PORT`] where there is none.
    out: Box<[u8]>,
    switches: usize,
    /// `hops[switch * PORTS + port]`: what hangs there.
    hops: Box<[Option<Hop>]>,
    /// The route from every node to its first switch.
    first: Box<[Hop]>,
    /// Of every link, bytes per second in each direction.
    bandwidth: Box<[f64]>,
}

/// Ports of a switch: a port is a byte.
pub(crate) const PORTS: usize = 256;

/// One step of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    pub channel: Channel,
    pub to: To,
}

/// Where a step leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Switch(u32),
    Node(NodeIndex),
}

/// Why a table does not lead to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It has no port for the node.
    Drops,
    /// Nothing hangs on its port.
    NoCable,
    /// Another node, or another link of the same node, hangs on its port.
    Astray(NodeIndex),
    /// What it sends there comes back.
    Loops,
}

/// Where a walk through the tables ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Unknown,
    /// On the walk that is under way.
    Here,
    Arrives,
    Fails(u32, Fault),
}

impl Tables {
    /// Tables as `out`, `hops` and `first` have them; see the fields.
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
    pub(crate) fn step(&self, switch: u32, to: NodeIndex) -> Result<Hop, Fault> {
        let port = self.port(switch, to);
        if port == NO_PORT {
            return Err(Fault::Drops);
        }
        let hop = self.hops[switch as usize * PORTS + usize::from(port)].ok_or(Fault::NoCable)?;
        match hop.to {
            // A node takes in only what comes by its first link, whose address it is.
            To::Node(node)
                if node != to || hop.channel / 2 != self.first[to as usize].channel / 2 =>
            {
                Err(Fault::Astray(node))
            }
            _ => Ok(hop),
        }
    }

    /// The first switch and destination for which the tables fail: those that send in a loop, and
    /// those that do not lead from a node to another of its site. O(switches) per destination.
    pub(crate) fn fault(&self) -> Option<(u32, NodeIndex, Fault)> {
        let fabric = &self.fabric;
        let site = |node| fabric.group(fabric.depth(), node);
        // The sites of the nodes that begin at each switch: one at most, as cables join them.
        let mut begins = vec![None; self.switches];
        for (node, hop) in (0..).zip(&self.first) {
            if let To::Switch(switch) = hop.to {
                begins[switch as usize] = Some(site(node));
            }
        }
        let mut ends = vec![End::Unknown; self.switches];
        for to in 0..fabric.nodes() {
            ends.fill(End::Unknown);
            for start in 0..self.switches as u32 {
                match self.walk(start, to, &mut ends) {
                    End::Fails(switch, Fault::Loops) => return Some((switch, to, Fault::Loops)),
                    End::Fails(switch, fault) if begins[start as usize] == Some(site(to)) => {
                        return Some((switch, to, fault));
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Where the route from a switch to a node ends; notes the same of all switches on it.
    fn walk(&self, start: u32, to: NodeIndex, ends: &mut [End]) -> End {
        let mut at = start;
        let end = loop {
            match ends[at as usize] {
                End::Unknown => ends[at as usize] = End::Here,
                End::Here => break End::Fails(at, Fault::Loops),
                known => break known,
            }
            match self.step(at, to) {
                Ok(Hop { to: To::Switch(next), .. }) => at = next,
                Ok(_) => break End::Arrives,
                Err(fault) => break End::Fails(at, fault),
            }
        };
        at = start;
        while ends[at as usize] == End::Here {
            ends[at as usize] = end;
            match self.step(at, to) {
                Ok(Hop { to: To::Switch(next), .. }) => at = next,
                _ => break,
            }
        }
        end
    }

    /// The switches that what `start` sends to a node passes again and again, `start` first.
    pub(crate) fn circle(&self, start: u32, to: NodeIndex) -> Vec<u32> {
        let mut passed = vec![start];
        while let Ok(Hop { to: To::Switch(next), .. }) = self.step(passed[passed.len() - 1], to) {
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
            let To::Switch(switch) = hop.to else { return Ok(()) };
            match self.step(switch, to) {
                Ok(next) => hop = next,
                Err(_) => break,
            }
        }
        path.truncate(before);
        Err(Unreachable { from, to })
    }
}
