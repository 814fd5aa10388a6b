//! Machines of GB200 NVL72 racks, as NVIDIA's reference architecture builds them.
//!
//! Source: NVIDIA's reference architecture for GB200 (docs.nvidia.com). A rack is one NVLink domain of 18 nodes with 4
//! GPUs each. Eight racks are a scalable unit. Every GPU has an adapter of 400 Gbit/s on a rail of its own; the
//! switches have 64 such ports and the compute fabric has full bisection bandwidth. The number of spines per unit and
//! the connections between units are assumptions.

use super::{InputError, pgft, shown};
use crate::description::{Cabling, Children, Description, DomainDescription, Group};
use crate::node_kind::NodeKind;
use crate::resources::ResourceCounts;

/// Nodes of a rack. A rack is a domain and has one leaf on each rail.
const NODES: u32 = 18;
/// Racks per scalable unit.
const RACKS: u32 = 8;
/// Adapters per node, one for each GPU.
const RAILS: u32 = 4;
/// Spines per unit and rail: the 18 uplinks of a leaf go to them, three each. Assumed.
const SPINES: u32 = 6;
/// Core switches above each spine: the number of the spine's ports to leaves. Assumed.
const CORES: u32 = RACKS * NODES / SPINES;
/// Units of the largest machine: limited by the ports of a core switch.
const MOST_UNITS: u32 = 64;
/// Bandwidth of a 400 Gbit/s cable or adapter, in bytes per second.
const NDR: f64 = 5e10;
/// NVLink bandwidth of the four GPUs of a node in each direction, in bytes per second: 900 GB/s per GPU.
const NVLINK: f64 = 3.6e12;

/// Parses `nvl72(units=U)`: U scalable units of eight racks.
///
/// # Errors
/// `units` is not a number from 1 to 64.
pub(super) fn from_arguments(name: &str, arguments: &str) -> Result<Description, InputError> {
    let units = arguments
        .split_once('=')
        .filter(|(key, _)| key.trim() == "units")
        .and_then(|(_, units)| units.trim().parse().ok())
        .filter(|units| (1..=MOST_UNITS).contains(units));
    match units {
        Some(units) => Ok(nvl72(name, units)),
        None => Err(InputError::whole(format!(
            "machine {name}: {} is not units=U with U from 1 to {MOST_UNITS}",
            shown(arguments)
        ))),
    }
}

/// Returns a machine of `units` scalable units. A single unit has no core switches.
pub(super) fn nvl72(name: &str, units: u32) -> Description {
    let depth = if units == 1 { 2 } else { 3 };
    let levels = |of: [u32; 3]| of[..depth].to_vec();
    let mut machine = pgft(
        "gb",
        &levels([NODES, RACKS, units]),
        &levels([RAILS, SPINES, CORES]),
        &levels([1, NODES / SPINES, 1]),
    );
    name.clone_into(&mut machine.name);
    machine.kinds = vec![tray()];
    for site in &mut machine.sites {
        for Cabling { bandwidth, .. } in &mut site.cabling {
            *bandwidth = NDR;
        }
        name_switches(&mut site.root, depth);
        add_racks(&site.root, &mut machine.domains);
    }
    machine
}

/// The kind of a compute tray: two Grace processors and four Blackwell GPUs.
fn tray() -> NodeKind {
    NodeKind {
        sockets: 2,
        cores_per_socket: 72,
        core_speed: 3.1e9,
        memory: 960 << 30,
        nics: RAILS,
        nic_bandwidth: NDR,
        memory_bandwidth: 1.024e12,
        resources: ResourceCounts::from([("gpu", RAILS), ("gpu:gb200", RAILS)]),
        ..NodeKind::default()
    }
}

/// Names the parallel switches of every group by their rail.
fn name_switches(group: &mut Group, level: usize) {
    let of_rail = [1, 1, SPINES, SPINES * CORES][level];
    let name = |(rail, number): (u32, u32)| match of_rail {
        1 => format!("{}-rail{rail}", group.name),
        _ => format!("{}-rail{rail}-{number}", group.name),
    };
    let switches = (0..RAILS).flat_map(|rail| (0..of_rail).map(move |number| (rail, number)));
    group.switches = switches.map(name).collect();
    if let Children::Groups(groups) = &mut group.children {
        for child in groups {
            name_switches(child, level - 1);
        }
    }
}

/// Adds a domain for every leaf, because every leaf is a rack.
fn add_racks(group: &Group, domains: &mut Vec<DomainDescription>) {
    match &group.children {
        Children::Nodes(nodes) => domains.push(DomainDescription {
            name: format!("rack{}", domains.len() + 1),
            nodes: nodes.iter().map(|node| node.name.clone()).collect(),
            bandwidth: NVLINK,
        }),
        Children::Groups(groups) => groups.iter().for_each(|child| add_racks(child, domains)),
    }
}
