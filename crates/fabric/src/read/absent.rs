//! Finds the cables that a subnet has lost since its machine was read.

use std::collections::{HashMap, HashSet};

use super::ibnetdiscover::discover;
use super::lfts::NamedText;
use super::ports::same_numbers;
use super::subnet::{CableEnd, Subnet};
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::CableId;

/// The cables of a machine that a subnet no longer has, ascending. `net` is the `ibnetdiscover` text from which the
/// machine was read, `now` a later one. A cable is identified by the switches' identifiers, the hosts' names and the
/// ports at its ends, so a cable that was moved counts as lost. New cables are ignored.
///
/// # Errors
/// A text that is not from `ibnetdiscover` or is cut short, or a machine that is not that of `net`.
pub fn absent(fabric: &Fabric, net: NamedText, now: NamedText) -> Result<Vec<CableId>, InputError> {
    let before = discover(net.text).map_err(|error| error.in_file(net.name))?;
    let built = Fabric::build(&before.description).map_err(|error| error.in_file(net.name))?;
    if !same_numbers(&built.description(), &fabric.description()) {
        let message = format!("the subnet is not that of machine {}", fabric.name());
        return Err(InputError::whole(message).in_file(net.name));
    }
    let after = Subnet::parse(now.text).map_err(|error| error.in_file(now.name))?;
    let names = DeviceNames::of(&after);
    let there: HashSet<[(String, u32); 2]> =
        after.cables.iter().map(|cable| names.cable(cable.ends)).collect();
    let names = DeviceNames::of(&before.subnet);
    let mut gone = Vec::new();
    for (site, cables) in (0..).zip(&before.cables) {
        for cabled in cables {
            if !there.contains(&names.cable([cabled.lower, cabled.upper])) {
                gone.extend(fabric.cable_at(site, cabled.place));
            }
        }
    }
    gone.sort_unstable();
    Ok(gone)
}

/// The names of devices that do not change when other devices come or go.
struct DeviceNames<'a> {
    subnet: &'a Subnet,
    guids: HashMap<usize, u64>,
}

impl<'a> DeviceNames<'a> {
    fn of(subnet: &'a Subnet) -> Self {
        let guids = subnet.switches.iter().map(|(&guid, &vertex)| (vertex, guid)).collect();
        DeviceNames { subnet, guids }
    }

    fn end(&self, end: CableEnd) -> (String, u32) {
        let name = match self.guids.get(&end.vertex) {
            Some(guid) => format!("switch {guid:x}"),
            None => format!("host {}", self.subnet.vertices[end.vertex].name),
        };
        (name, end.port)
    }

    fn cable(&self, ends: [CableEnd; 2]) -> [(String, u32); 2] {
        let mut ends = ends.map(|end| self.end(end));
        ends.sort();
        ends
    }
}
