//! The ports of a discovered subnet: the port by which each switch sends over each cable, and the receiver of each
//! address.

use super::ibnetdiscover::{Discovery, discover};
use super::lfts::NamedText;
use super::lids::Lids;
use super::subnet::CableEnd;
use crate::description::{Children, Description, Group};
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::routing::{SwitchPlace, above};

/// The ports and addresses of a subnet, in terms of its fabric.
#[derive(Debug, Clone)]
pub struct SubnetPorts {
    /// The switches, in the order of the file.
    pub switches: Vec<SwitchPorts>,
    /// The receivers of LIDs, in ascending order of LID.
    pub receivers: Vec<Receiver>,
    /// For each cable, its ports at the lower and at the upper end; 0 if the cable is missing.
    pub of_cable: Vec<(u8, u8)>,
    /// LIDs of devices outside the tree, such as routers.
    pub outside: Vec<u16>,
}

/// A switch of a subnet.
#[derive(Debug, Clone)]
pub struct SwitchPorts {
    /// The position of the switch in the fabric.
    pub place: SwitchPlace,
    /// The identifier of the switch (node GUID).
    pub guid: u64,
    /// The name of the switch.
    pub name: String,
    /// The LID of the switch itself; 0 if it has none.
    pub lid: u16,
}

/// The receiver of some LIDs.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// The first LID.
    pub base: u16,
    /// The number of consecutive LIDs from there.
    pub count: u16,
    /// Identifier of the port, if the file gives it.
    pub guid: Option<u64>,
    /// Name of the host or switch.
    pub name: String,
    /// The kind of receiver.
    pub to: LidReceiver,
}

/// The device that receives packets to a LID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LidReceiver {
    /// A port of a node: the node, and its cable at this port.
    Node(NodeIndex, CableId),
    /// A switch.
    Switch(SwitchPlace),
    /// A device outside the tree, behind a port of a switch: a host on a switch above the leaves, a further adapter of
    /// a host, or a switch without nodes.
    Behind(SwitchPlace, u8),
}

/// Returns the ports of the subnet that `net`, a text of `ibnetdiscover`, describes.
///
/// # Errors
/// Whatever [`ibnetdiscover`](super::ibnetdiscover) refuses; a subnet whose nodes, groups and cables are numbered
/// differently from `fabric`; a node or a switch without a LID; a LID given twice.
pub fn ports(fabric: &Fabric, net: NamedText) -> Result<SubnetPorts, InputError> {
    let found = discover(net.text).and_then(|found| read(fabric, &found));
    found.map_err(|error| error.in_file(net.name))
}

fn read(fabric: &Fabric, found: &Discovery) -> Result<SubnetPorts, InputError> {
    let built = Fabric::build(&found.description)?.description();
    if !same_numbers(&built, &fabric.description()) {
        let message = format!("the subnet is not that of machine {}", fabric.name());
        return Err(InputError::whole(message));
    }
    let mut reader = Reader { fabric, found, place: Vec::new(), cable_at: Vec::new() };
    let mut ports = SubnetPorts {
        switches: Vec::new(),
        receivers: Vec::new(),
        of_cable: vec![(0, 0); fabric.links() as usize],
        outside: Vec::new(),
    };
    reader.lay_cables(&mut ports)?;
    reader.name_receivers(&mut ports)?;
    reader.name_switches(&mut ports)?;
    Ok(ports)
}

struct Reader<'a> {
    fabric: &'a Fabric,
    found: &'a Discovery,
    /// The position of every vertex.
    place: Vec<Option<SwitchPlace>>,
    /// For each port of a node, its cable.
    cable_at: Vec<((usize, u32), CableId)>,
}

impl Reader<'_> {
    fn lay_cables(&mut self, ports: &mut SubnetPorts) -> Result<(), InputError> {
        let fabric = self.fabric;
        self.place = vec![None; self.found.subnet.vertices.len()];
        for (site, cables) in (0..).zip(&self.found.cables) {
            for cabled in cables {
                let at = fabric.cable_at(site, cabled.place);
                let at = at.and_then(|cable| Some((cable, fabric.cable_place(cable)?)));
                let Some((cable, (level, group, number, parent, _))) = at else {
                    let message = "a cable of the subnet has no place in the machine";
                    return Err(InputError::whole(message));
                };
                let lower = SwitchPlace { level, group, number };
                let mut upper = above(fabric, lower, parent);
                // Above padding, the first parent stands for all parents of the padded levels.
                while fabric.is_padding(upper.level, upper.group) {
                    upper = above(fabric, upper, 0);
                }
                self.place[cabled.lower.vertex] = Some(lower);
                self.place[cabled.upper.vertex] = Some(upper);
                if level == 0 {
                    self.cable_at.push(((cabled.lower.vertex, cabled.lower.port), cable));
                }
                let port = |end: CableEnd| end.port as u8; // of a switch; it was read from a byte
                ports.of_cable[cable as usize] = (port(cabled.lower), port(cabled.upper));
            }
        }
        self.cable_at.sort_unstable();
        Ok(())
    }

    fn name_receivers(&self, ports: &mut SubnetPorts) -> Result<(), InputError> {
        for address in &self.found.subnet.addresses {
            let Lids { base, count } = address.lids;
            let to = address.end.and_then(|end| {
                let Some(place) = self.place[end.vertex] else { return self.behind(end) };
                if place.level > 0 {
                    return Some(LidReceiver::Switch(place));
                }
                let at = self.cable_at.binary_search_by_key(&(end.vertex, end.port), |at| at.0);
                let node = |at: usize| LidReceiver::Node(place.group, self.cable_at[at].1);
                at.ok().map(node).or_else(|| self.behind(end))
            });
            let (Some(to), Some(end)) = (to, address.end) else {
                ports.outside.push(base);
                continue;
            };
            let name = self.found.subnet.vertices[end.vertex].name.clone();
            ports.receivers.push(Receiver { base, count, guid: address.guid, name, to });
        }
        ports.receivers.sort_by_key(|receiver| receiver.base);
        let twice = ports.receivers.windows(2).find(|pair| {
            u32::from(pair[0].base) + u32::from(pair[0].count) > u32::from(pair[1].base)
        });
        if let Some([_, second]) = twice {
            return Err(InputError::whole(format!("LID {} is given twice", second.base)));
        }
        let mut heard = vec![false; self.fabric.nodes() as usize];
        for receiver in &ports.receivers {
            if let LidReceiver::Node(node, _) = receiver.to {
                heard[node as usize] = true;
            }
        }
        match heard.iter().position(|heard| !heard) {
            None => Ok(()),
            Some(node) => {
                let host = self.fabric.node_name(node as NodeIndex);
                let message =
                    format!("no LID of host {host}: has a subnet manager swept the subnet?");
                Err(InputError::whole(message))
            }
        }
    }

    /// A port of a switch of the tree that a spare cable connects to this port of a host, or to any port of this
    /// switch.
    fn behind(&self, end: CableEnd) -> Option<LidReceiver> {
        let subnet = &self.found.subnet;
        let is_host = subnet.vertices[end.vertex].is_host;
        let near = |one: &CableEnd| one.vertex == end.vertex && (one.port == end.port || !is_host);
        subnet.spare.iter().find_map(|cable| {
            let [a, b] = cable.ends;
            let far = [(a, b), (b, a)].into_iter().find(|(one, _)| near(one))?.1;
            let place = self.place[far.vertex].filter(|place| place.level > 0)?;
            Some(LidReceiver::Behind(place, far.port as u8)) // of a switch; it was read from a byte
        })
    }

    fn name_switches(&self, ports: &mut SubnetPorts) -> Result<(), InputError> {
        let mut switches: Vec<(usize, u64)> =
            self.found.subnet.switches.iter().map(|(&guid, &vertex)| (vertex, guid)).collect();
        switches.sort_unstable();
        for (vertex, guid) in switches {
            let known = &self.found.subnet.vertices[vertex];
            let Some(place) = self.place[vertex] else { continue };
            let own =
                ports.receivers.iter().find(|receiver| receiver.to == LidReceiver::Switch(place));
            let Some(own) = own else {
                let message = format!("no LID of switch {}", known.name);
                return Err(InputError::at(known.line, message));
            };
            let (lid, name) = (own.base, known.name.clone());
            ports.switches.push(SwitchPorts { place, guid, name, lid });
        }
        Ok(())
    }
}

/// Whether nodes, groups and cables of two machines have the same numbers, and nodes the same names. Group names,
/// bandwidths and node kinds may differ.
pub(super) fn same_numbers(a: &Description, b: &Description) -> bool {
    a.sites.len() == b.sites.len()
        && a.sites.iter().zip(&b.sites).all(|(a, b)| {
            let shape = |cabling: &crate::description::Cabling| {
                (cabling.parents, cabling.cables, cabling.joined)
            };
            a.missing == b.missing
                && a.cabling.iter().map(shape).eq(b.cabling.iter().map(shape))
                && same_groups(&a.root, &b.root)
        })
}

fn same_groups(a: &Group, b: &Group) -> bool {
    match (&a.children, &b.children) {
        (Children::Nodes(a), Children::Nodes(b)) => {
            a.iter().map(|node| &node.name).eq(b.iter().map(|node| &node.name))
        }
        (Children::Groups(a), Children::Groups(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_groups(a, b))
        }
        _ => false,
    }
}
