//! Writes linear forwarding tables in the form that `OpenSM`'s file routing engine loads.

use std::fmt::Write;

use crate::error::InputError;
use crate::link::Direction;
use crate::nodeset::NodeSet;
use crate::read::{LidEntry, LidReceiver, NamedText, Receiver, SubnetPorts, lft_entries};
use crate::routing::{DedicatedRouting, Routing, SwitchPlace};

/// The forwarding tables of every switch of a subnet.
#[derive(Debug, Clone)]
pub struct LinearTables {
    ports: SubnetPorts,
    /// `out[switch][receiver]`: the output port; `None` if there is no route.
    out: Vec<Vec<Option<u8>>>,
}

impl LinearTables {
    /// Returns the tables that `routes` give to the switches of a subnet. All LIDs of a port have the same entries.
    pub fn new(routes: &DedicatedRouting, ports: SubnetPorts) -> LinearTables {
        let port = |at: SwitchPlace, receiver: &Receiver| port(routes, &ports, at, receiver);
        let of_switch = |at| ports.receivers.iter().map(|receiver| port(at, receiver)).collect();
        let out = ports.switches.iter().map(|switch| of_switch(switch.place)).collect();
        LinearTables { ports, out }
    }

    /// Returns the tables after jobs started or ended on `nodes`; only the entries of these nodes can change.
    #[must_use]
    pub fn after(&self, routes: &DedicatedRouting, nodes: &NodeSet) -> LinearTables {
        let mut tables = self.clone();
        for (switch, out) in self.ports.switches.iter().zip(&mut tables.out) {
            for (receiver, port) in self.ports.receivers.iter().zip(out) {
                if matches!(receiver.to, LidReceiver::Node(node, _) if nodes.contains(node)) {
                    *port = self::port(routes, &self.ports, switch.place, receiver);
                }
            }
        }
        tables
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        let routes = |(receiver, port): (&Receiver, &Option<u8>)| {
            if port.is_some() { usize::from(receiver.count) } else { 0 }
        };
        let of_switch = |out: &Vec<Option<u8>>| -> usize {
            self.ports.receivers.iter().zip(out).map(routes).sum()
        };
        self.out.iter().map(of_switch).sum()
    }

    /// The number of entries that differ from other tables of the same subnet.
    pub fn differing(&self, other: &LinearTables) -> usize {
        let pairs = self.out.iter().flatten().zip(other.out.iter().flatten());
        pairs.filter(|(one, other)| one != other).count()
    }

    /// The text that `opensm -R file -U FILE` loads, in the format of its `opensm-lfts.dump`. `opensm` matches ports by
    /// their identifiers, so it uses the new LID if one has changed.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let last = self.ports.receivers.last();
        let highest = last.map_or(0, |receiver| receiver.base + receiver.count - 1);
        for (switch, out) in self.ports.switches.iter().zip(&self.out) {
            let (lid, guid, name) = (switch.lid, switch.guid, &switch.name);
            let _ = writeln!(
                text,
                "Unicast lids [0-{highest}] of switch Lid {lid} guid 0x{guid:016x} ('{name}'):"
            );
            for (receiver, port) in self.ports.receivers.iter().zip(out) {
                let Some(port) = port else { continue };
                for lid in receiver.base..receiver.base + receiver.count {
                    let _ = write!(text, "0x{lid:04x} {port:03} # ");
                    put_receiver(&mut text, receiver);
                }
            }
            let _ = writeln!(text, "{highest} lids dumped");
        }
        text
    }

    /// The entries that differ from an earlier text: `(node, number of entries)` for each node, then the number for all
    /// other receivers.
    ///
    /// # Errors
    /// A text that is not a dump of forwarding tables.
    pub fn changed(&self, earlier: NamedText) -> Result<(Vec<(u32, usize)>, usize), InputError> {
        let mut before = lft_entries(earlier)?;
        let (mut nodes, mut others) = (std::collections::BTreeMap::new(), 0);
        for (switch, out) in self.ports.switches.iter().zip(&self.out) {
            for (receiver, &port) in self.ports.receivers.iter().zip(out) {
                for lid in receiver.base..receiver.base + receiver.count {
                    if before.remove(&LidEntry { guid: switch.guid, lid }) == port {
                        continue;
                    }
                    match receiver.to {
                        LidReceiver::Node(node, _) => *nodes.entry(node).or_insert(0) += 1,
                        LidReceiver::Switch(_) | LidReceiver::Behind(..) => others += 1,
                    }
                }
            }
        }
        Ok((nodes.into_iter().collect(), others + before.len()))
    }
}

fn put_receiver(text: &mut String, receiver: &Receiver) {
    let kind = match receiver.to {
        LidReceiver::Node(..) | LidReceiver::Behind(..) => "Channel Adapter",
        LidReceiver::Switch(_) => "Switch",
    };
    let _ = match receiver.guid {
        Some(guid) => writeln!(text, "{kind} portguid 0x{guid:016x}: '{}'", receiver.name),
        None => writeln!(text, "{kind} '{}'", receiver.name),
    };
}

/// The port by which a switch sends to a receiver; 0 for the switch itself.
fn port(
    routes: &DedicatedRouting,
    ports: &SubnetPorts,
    at: SwitchPlace,
    receiver: &Receiver,
) -> Option<u8> {
    let (to, last) = match receiver.to {
        LidReceiver::Behind(place, port) if place == at => return Some(port),
        LidReceiver::Switch(place) | LidReceiver::Behind(place, _) => (place, None),
        LidReceiver::Node(node, cable) => (SwitchPlace::node(node), Some(cable)),
    };
    // A LID belongs to one adapter, and so to one rail.
    let rail = last.and_then(|cable| routes.fabric().cable_place(cable)).map(|place| place.3);
    let mut at = at;
    if at == to {
        return Some(0);
    }
    loop {
        let step = routes.step_on(at, to, rail)?;
        // The last of several cables to one node is the one at the port with this LID.
        let cable = if step.to == to && last.is_some() { last } else { step.link.map(|l| l.cable) };
        match (cable, step.link) {
            (Some(cable), Some(link)) => {
                let (lower, upper) = ports.of_cable[cable as usize];
                return Some(if link.direction == Direction::Up { lower } else { upper });
            }
            _ => at = step.to, // padding
        }
    }
}
