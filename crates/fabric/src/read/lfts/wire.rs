//! Finds the node, switch or cable of the fabric behind each port of a subnet, and the receiver of each LID.

use std::collections::{HashMap, HashSet};

use super::super::ibnetdiscover::Discovery;
use super::super::lids::HIGHEST;
use super::super::subnet::{Address, CableEnd};
use crate::description::Description;
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::routing::{Hop, NextDevice, PORTS};

/// The receiver of a LID.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum LidOwner {
    /// A node. The LID is the base LID of its first port, to which traffic is addressed.
    Node(NodeIndex),
    /// A switch, another port or LID of a node, or a device outside the tree.
    Other,
}

pub(super) struct Wire {
    /// The names of the switches, by their index here.
    pub switches: Vec<String>,
    pub by_guid: HashMap<u64, usize>,
    /// Switches of the subnet that are not part of its tree.
    pub skipped: HashSet<u64>,
    /// `hops[switch * PORTS + port]` is the step through that port.
    pub hops: Vec<Option<Hop>>,
    /// The first link of every node.
    pub first: Vec<Hop>,
    /// The LID of every node.
    pub lids: Vec<u16>,
    owners: Vec<Option<LidOwner>>,
}

impl Wire {
    /// Returns the wiring of a discovered subnet. `fabric` must have been read from the same subnet.
    pub(super) fn of(fabric: &Fabric, found: &Discovery) -> Result<Wire, InputError> {
        let built = Fabric::build(&found.description)?;
        if !same_places(&built.description(), &fabric.description()) {
            let message = format!("machine {} was not read from this subnet", fabric.name());
            return Err(InputError::whole(message));
        }
        let places = VertexPlaces::of(fabric, found)?;
        let mut wire = Wire {
            switches: Vec::new(),
            by_guid: HashMap::new(),
            skipped: HashSet::new(),
            hops: Vec::new(),
            first: Vec::new(),
            lids: vec![0; fabric.nodes() as usize],
            owners: vec![None; usize::from(HIGHEST) + 1],
        };
        for (vertex, to) in found.subnet.vertices.iter().zip(&places.of_vertex) {
            if matches!(to, Some(NextDevice::Switch(_))) {
                wire.switches.push(vertex.name.clone());
            }
        }
        for (&guid, &vertex) in &found.subnet.switches {
            if let Some(NextDevice::Switch(switch)) = places.of_vertex[vertex] {
                wire.by_guid.insert(guid, switch as usize);
            } else {
                wire.skipped.insert(guid);
            }
        }
        let ports = wire.connect(fabric, found, &places)?;
        for address in &found.subnet.addresses {
            wire.assign(address, &places, &ports)?;
        }
        if let Some(node) = wire.lids.iter().position(|&lid| lid == 0) {
            let host = fabric.node_name(node as NodeIndex);
            let message = format!("no LID of host {host}: has a subnet manager swept the subnet?");
            return Err(InputError::whole(message));
        }
        Ok(wire)
    }

    /// The receiver of a LID; `None` if there is none.
    pub(super) fn owner(&self, lid: u16) -> Option<LidOwner> {
        self.owners.get(usize::from(lid)).copied().flatten()
    }

    /// Connects the ends of all cables. Returns the port of the first link of every node.
    fn connect(
        &mut self,
        fabric: &Fabric,
        found: &Discovery,
        places: &VertexPlaces,
    ) -> Result<Vec<u32>, InputError> {
        self.hops = vec![None; self.switches.len() * PORTS];
        let mut first: Vec<Option<(u32, Hop)>> = vec![None; fabric.nodes() as usize];
        for (site, cables) in (0..).zip(&found.cables) {
            for cabled in cables {
                let cable: CableId = fabric.cable_at(site, cabled.place).ok_or_else(|| {
                    InputError::whole("a cable of the subnet has no place in the machine")
                })?;
                let [lower, upper] = [cabled.lower, cabled.upper];
                let at = |end: CableEnd| places.of_vertex[end.vertex];
                // A cable with a position in the tree has no skipped end.
                let (Some(below), Some(above)) = (at(lower), at(upper)) else { continue };
                let way = |to, direction| Hop { channel: 2 * cable + direction, to };
                for (end, from, hop) in
                    [(lower, below, way(above, 0)), (upper, above, way(below, 1))]
                {
                    match from {
                        NextDevice::Switch(switch) => {
                            let port = switch as usize * PORTS + end.port as usize % PORTS;
                            self.hops[port] = Some(hop);
                        }
                        NextDevice::Node(node) => {
                            let known = &mut first[node as usize];
                            if known.is_none_or(|(port, _)| end.port < port) {
                                *known = Some((end.port, hop));
                            }
                        }
                    }
                }
            }
        }
        let first: Option<Vec<(u32, Hop)>> = first.into_iter().collect();
        let first = first.ok_or_else(|| InputError::whole("a node of the machine has no cable"))?;
        self.first = first.iter().map(|&(_, hop)| hop).collect();
        Ok(first.iter().map(|&(port, _)| port).collect())
    }

    fn assign(
        &mut self,
        address: &Address,
        places: &VertexPlaces,
        ports: &[u32],
    ) -> Result<(), InputError> {
        let at = address.end.map(|end| (places.of_vertex[end.vertex], end.port));
        let owner = match at {
            Some((Some(NextDevice::Node(node)), port)) if ports[node as usize] == port => {
                self.lids[node as usize] = address.lids.base;
                LidOwner::Node(node)
            }
            _ => LidOwner::Other,
        };
        for lid in address.lids.all() {
            // LIDs above the base address other routes to the same port.
            let owner = if lid == address.lids.base { owner } else { LidOwner::Other };
            if self.owners[usize::from(lid)].replace(owner).is_some() {
                let message = format!("LID {lid} is given twice");
                return Err(InputError::at(address.line, message));
            }
        }
        Ok(())
    }
}

/// The nodes and switches of the fabric for the vertices of a subnet. Switches are numbered in their order.
struct VertexPlaces {
    /// For each vertex, its node or switch; `None` if it is not part of the tree.
    of_vertex: Vec<Option<NextDevice>>,
}

impl VertexPlaces {
    fn of(fabric: &Fabric, found: &Discovery) -> Result<VertexPlaces, InputError> {
        let mut of_vertex = Vec::with_capacity(found.subnet.vertices.len());
        let mut switches = 0;
        for vertex in &found.subnet.vertices {
            of_vertex.push(if vertex.skipped {
                None
            } else if vertex.is_host {
                let node = fabric.node_named(&vertex.name).ok_or_else(|| {
                    let message = format!("host {} is not in the machine", vertex.name);
                    InputError::at(vertex.line, message)
                })?;
                Some(NextDevice::Node(node))
            } else {
                switches += 1;
                Some(NextDevice::Switch(switches - 1))
            });
        }
        Ok(VertexPlaces { of_vertex })
    }
}

/// Whether nodes and cables of two machines have the same numbers. Bandwidths and node kinds may differ.
fn same_places(a: &Description, b: &Description) -> bool {
    a.sites.len() == b.sites.len()
        && a.sites.iter().zip(&b.sites).all(|(a, b)| {
            let shape = |cabling: &crate::description::Cabling| {
                (cabling.parents, cabling.cables, cabling.joined)
            };
            a.missing == b.missing
                && a.cabling.iter().map(shape).eq(b.cabling.iter().map(shape))
                && a.root == b.root
        })
}
