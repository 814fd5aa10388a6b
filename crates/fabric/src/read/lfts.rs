//! Reads the forwarding tables of a real subnet, as `opensm` or `dump_fts` write them, with the text of
//! `ibnetdiscover`.

mod parse;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;

use self::parse::{ForwardingTable, tables};
use self::wire::{LidOwner, Wire};
use super::ibnetdiscover::discover;
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::NodeIndex;
use crate::routing::{NO_PORT, PORTS, RouteFault, Tables};

/// A text, and the name of its file.
#[derive(Debug, Clone, Copy)]
pub struct NamedText<'a> {
    /// The text.
    pub text: &'a str,
    /// The file name that errors show.
    pub name: &'a str,
}

/// Returns the routing of a machine by the linear forwarding tables of its subnet. It needs `opensm`'s
/// `opensm-lfts.dump` or the output of `dump_fts`, and the output of `ibnetdiscover` from the same moment, from which
/// `fabric` was read. A route leads from the first port of a host to the base LID of the other host's first port.
///
/// # Errors
/// With file and line. In `net`: whatever [`ibnetdiscover`](super::ibnetdiscover) refuses, a subnet that is not
/// `fabric`, a host without a LID, or a LID given twice. In `lfts`: a line that does not belong to a table, a truncated
/// table, a switch or a LID that `net` does not have, or a switch of `net` without a table. Also, naming the switch and
/// the destination: a table that loops, or that does not lead to a host of its site because of a missing entry, a
/// missing cable or another host there.
pub fn lfts(fabric: &Arc<Fabric>, lfts: NamedText, net: NamedText) -> Result<Tables, InputError> {
    let found = discover(net.text).map_err(|error| error.in_file(net.name))?;
    let wire = Wire::of(fabric, &found).map_err(|error| error.in_file(net.name))?;
    let read = tables(lfts.text).and_then(|tables| fill(fabric, &wire, &tables, net.name));
    read.map_err(|error| error.in_file(lfts.name))
}

/// The key of a table entry: the identifier of a switch, and a LID.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct LidEntry {
    pub guid: u64,
    pub lid: u16,
}

/// The port of every entry of a dump that has one.
pub(crate) fn entries(dump: NamedText) -> Result<HashMap<LidEntry, u8>, InputError> {
    let tables = tables(dump.text).map_err(|error| error.in_file(dump.name))?;
    let entry =
        |guid, entry: &parse::ForwardingEntry| (LidEntry { guid, lid: entry.lid }, entry.port);
    let of = |table: &ForwardingTable| {
        table.entries.iter().map(|e| entry(table.guid, e)).collect::<Vec<_>>()
    };
    Ok(tables.iter().flat_map(of).filter(|(_, port)| *port != NO_PORT).collect())
}

fn fill(
    fabric: &Arc<Fabric>,
    wire: &Wire,
    tables: &[ForwardingTable],
    net: &str,
) -> Result<Tables, InputError> {
    let switches = wire.switches.len();
    let mut out = vec![NO_PORT; switches * fabric.nodes() as usize];
    let mut table_of: Vec<Option<&ForwardingTable>> = vec![None; switches];
    for table in tables.iter().filter(|table| !wire.skipped.contains(&table.guid)) {
        let Some(&switch) = wire.by_guid.get(&table.guid) else {
            let message = format!("switch 0x{:016x} ({}) is not in {net}", table.guid, table.name);
            return Err(InputError::at(table.line, message));
        };
        if let Some(first) = table_of[switch].replace(table) {
            let name = &wire.switches[switch];
            let message = format!("switch {name} has a table on line {} already", first.line);
            return Err(InputError::at(table.line, message));
        }
        for entry in &table.entries {
            match wire.owner(entry.lid) {
                Some(LidOwner::Node(node)) => out[node as usize * switches + switch] = entry.port,
                Some(LidOwner::Other) => {}
                // No traffic goes to a LID for which the subnet manager itself knows no port.
                None if entry.unknown => {}
                None => {
                    let message = format!("LID 0x{:04x} belongs to no port of {net}", entry.lid);
                    return Err(InputError::at(entry.line, message));
                }
            }
        }
    }
    if let Some(switch) = table_of.iter().position(Option::is_none) {
        let message = format!("no table of switch {}, which is in {net}", wire.switches[switch]);
        return Err(InputError::whole(message));
    }
    let made = Tables::new(Arc::clone(fabric), out, wire.hops.clone(), wire.first.clone());
    debug_assert_eq!(wire.hops.len(), switches * PORTS);
    match made.fault() {
        None => Ok(made),
        Some((switch, to, fault)) => {
            let table = table_of[switch as usize];
            Err(refusal(&made, wire, table, (switch, to, fault)))
        }
    }
}

/// The error for a table that does not lead to a host.
fn refusal(
    made: &Tables,
    wire: &Wire,
    table: Option<&ForwardingTable>,
    (switch, to, fault): (u32, NodeIndex, RouteFault),
) -> InputError {
    use crate::routing::Routing;
    let name = |switch: u32| wire.switches[switch as usize].as_str();
    let host = |node| made.fabric().node_name(node);
    let (own, lid, port) = (name(switch), wire.lids[to as usize], made.port(switch, to));
    let entry = table.and_then(|table| table.entries.iter().find(|entry| entry.lid == lid));
    let line = entry.map(|entry| entry.line).or(table.map(|table| table.line)).unwrap_or(0);
    let what = match fault {
        RouteFault::Drops => "has no port for it".to_owned(),
        RouteFault::NoCable if port == 0 => "takes it for itself (port 0)".to_owned(),
        RouteFault::NoCable => format!("sends it out of port {port}, which has no cable"),
        RouteFault::Astray(other) if other == to => {
            format!("sends it out of port {port} to another link of that host")
        }
        RouteFault::Astray(other) => format!("sends it out of port {port} to host {}", host(other)),
        RouteFault::Loops => {
            let circle = made.circle(switch, to);
            let shown: Vec<&str> = circle.iter().take(8).map(|&switch| name(switch)).collect();
            let more = if circle.len() > shown.len() { " -> ..." } else { "" };
            format!("sends it round: {}{more} -> {own}", shown.join(" -> "))
        }
    };
    let message = format!("destination {} (LID 0x{lid:04x}): switch {own} {what}", host(to));
    InputError::at(line, message)
}
