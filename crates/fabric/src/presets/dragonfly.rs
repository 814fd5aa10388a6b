//! Dragonflies: Cray's Aries, and HPE's Slingshot.

use super::{node_of_kind_0, shown};
use crate::description::{
    Cabling, Children, Description, DragonflyDescription, Group, SiteDescription, SwitchCable,
    WiringDescription,
};
use crate::error::InputError;
use crate::fabric::{most_cables, too_many_cables};
use crate::node_kind::NodeKind;

/// Routers of a chassis: one row of a group.
const COLUMNS: u32 = 16;
/// Chassis of a group of two cabinets.
const ROWS: u32 = 6;
/// Parallel cables between two chassis at one position.
const BLACK: u32 = 3;
/// Bandwidth of an electrical Aries link in each direction (Faanes et al., SC'12), in bytes per second.
pub(crate) const ELECTRICAL: f64 = 5.25e9;
/// Bandwidth of an optical Aries link in each direction (the same paper), in bytes per second.
pub(crate) const OPTICAL: f64 = 4.7e9;
/// Bandwidth of a Slingshot link: 200 Gbit/s, in bytes per second.
const SLINGSHOT: f64 = 2.5e10;
/// The most groups that `slingshot(...)` makes.
const MOST_GROUPS: u32 = 1024;
/// The most switches of a group.
const MOST_SWITCHES: u32 = 128;

/// Returns a Cray XC of `groups` groups of 96 routers. Between each two groups there are 2 cables from each router of
/// `width` columns. `nodes` of each group have up to 4 on a router; the last routers have fewer or none.
///
/// The order of cables is that of two published machines: CODES has every cable of a state of Theta (9 groups, 4
/// columns) and of Edison (15 groups, 2 columns). The other groups, in order, take the next `width` columns in turn; a
/// cable joins routers of the same row, and of the same place in their columns.
pub(super) fn aries(name: &str, groups: u32, width: u32, nodes: u32) -> Description {
    let switch = |group, row, column| (group * ROWS + row) * COLUMNS + column;
    let mut cables = Vec::new();
    let mut join = |a, b, count, bandwidth| {
        cables.push(SwitchCable { between: (a, b), count, bandwidth });
    };
    for group in 0..groups {
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let at = switch(group, row, column);
                for other in column + 1..COLUMNS {
                    join(at, switch(group, row, other), 1, ELECTRICAL);
                }
                for other in row + 1..ROWS {
                    join(at, switch(group, other, column), BLACK, ELECTRICAL);
                }
            }
        }
        for other in group + 1..groups {
            // The place of each among the other groups of the other.
            let first = |place: u32| place % (COLUMNS / width) * width;
            let (here, there) = (first(other - 1), first(group));
            for row in 0..ROWS {
                for column in 0..width {
                    let ends =
                        (switch(group, row, here + column), switch(other, row, there + column));
                    join(ends.0, ends.1, 2, OPTICAL);
                }
            }
        }
    }
    let names = (0..groups).map(|group| {
        let name = |place| format!("g{group}r{}s{}", place / COLUMNS, place % COLUMNS);
        (0..ROWS * COLUMNS).map(name).collect()
    });
    let wiring = DragonflyDescription { groups: names.collect(), cables };
    let on_switch = |place: u32| nodes.saturating_sub(4 * place).min(4);
    dragonfly(name, wiring, ELECTRICAL, on_switch)
}

/// Parses `slingshot(nodes=N, groups=G, switches=S, cables=C)`.
pub(super) fn from_arguments(name: &str, arguments: &str) -> Result<Description, InputError> {
    let (mut nodes, mut groups, mut switches, mut cables) = (None, None, None, None);
    for argument in arguments.split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let (key, text) = argument.split_once('=').unwrap_or((argument, ""));
        let value = text.trim().parse::<u32>().ok().filter(|&value| value > 0);
        let slot = match key.trim() {
            "nodes" => &mut nodes,
            "groups" => &mut groups,
            "switches" => &mut switches,
            "cables" => &mut cables,
            _ => {
                return Err(InputError::whole(format!(
                    "machine {name}: {} is none of nodes=N, groups=G, switches=S, cables=C",
                    shown(argument)
                )));
            }
        };
        *slot = Some(value.ok_or_else(|| {
            InputError::whole(format!(
                "machine {name}: {} is not a number above 0",
                shown(argument)
            ))
        })?);
    }
    let (Some(nodes), Some(groups), Some(switches)) = (nodes, groups, switches) else {
        return Err(InputError::whole(format!(
            "machine {name} needs nodes=N, groups=G and switches=S"
        )));
    };
    let cables = cables.unwrap_or(1);
    let fits = groups <= MOST_GROUPS && switches <= MOST_SWITCHES && cables <= switches;
    if !fits || nodes % groups != 0 || nodes > 1 << 20 {
        return Err(InputError::whole(format!(
            "machine {name} needs at most {MOST_GROUPS} groups, {MOST_SWITCHES} switches in each and as many cables as \
             switches, and the same number of nodes in each group"
        )));
    }
    let pairs = |count: u32| u64::from(count) * u64::from(count - 1) / 2;
    let joined = u64::from(groups) * pairs(switches) + pairs(groups) * u64::from(cables);
    if joined > most_cables(nodes) {
        return Err(too_many_cables(name, nodes));
    }
    Ok(slingshot(name, nodes, groups, switches, cables))
}

/// Returns a dragonfly of `groups` groups of `switches`, joined all to all, with `cables` between each two groups. The
/// nodes are spread evenly. The cables of a group to all others go from its switches in turn.
pub(super) fn slingshot(
    name: &str,
    nodes: u32,
    groups: u32,
    switches: u32,
    cables: u32,
) -> Description {
    let mut joined = Vec::new();
    for group in 0..groups {
        let first = group * switches;
        for at in 0..switches {
            for other in at + 1..switches {
                let between = (first + at, first + other);
                joined.push(SwitchCable { between, count: 1, bandwidth: SLINGSHOT });
            }
        }
        for other in group + 1..groups {
            for cable in 0..cables {
                let here = ((other - 1) * cables + cable) % switches;
                let there = (group * cables + cable) % switches;
                let between = (first + here, other * switches + there);
                joined.push(SwitchCable { between, count: 1, bandwidth: SLINGSHOT });
            }
        }
    }
    let names = |group| (0..switches).map(|place| format!("g{group}s{place}")).collect();
    let wiring = DragonflyDescription { groups: (0..groups).map(names).collect(), cables: joined };
    let each = u64::from(nodes / groups.max(1));
    let before = |place: u32| (u64::from(place) * each / u64::from(switches.max(1))) as u32;
    dragonfly(name, wiring, SLINGSHOT, |place| before(place + 1) - before(place))
}

/// Returns the machine of a dragonfly. `on_switch` is the number of nodes of the switch at a place of its group.
fn dragonfly(
    name: &str,
    wiring: DragonflyDescription,
    to_nodes: f64,
    on_switch: impl Fn(u32) -> u32,
) -> Description {
    let stem = name.split('(').next().unwrap_or(name);
    let mut names = (1..).map(|number: u64| format!("{stem}{number}"));
    let places: Vec<u32> =
        wiring.groups.iter().flat_map(|switches| 0..switches.len() as u32).collect();
    let mut places = places.into_iter();
    let nodes = || {
        let count = places.next().map_or(0, &on_switch);
        names.by_ref().take(count as usize).collect()
    };
    dragonfly_of(name, wiring, to_nodes, nodes)
}

/// Returns the machine of a dragonfly. `nodes` gives the names of the nodes of each switch in turn; `to_nodes` is the
/// bandwidth of their cables.
pub(crate) fn dragonfly_of(
    name: &str,
    wiring: DragonflyDescription,
    to_nodes: f64,
    mut nodes: impl FnMut() -> Vec<String>,
) -> Description {
    let named = |name: String, children| Group { name, switches: Vec::new(), children };
    let mut groups = Vec::with_capacity(wiring.groups.len());
    for (number, switches) in wiring.groups.iter().enumerate() {
        let mut leaves = Vec::new();
        for switch in switches {
            let own: Vec<_> = nodes().into_iter().map(node_of_kind_0).collect();
            if !own.is_empty() {
                leaves.push(named(switch.clone(), Children::Nodes(own)));
            }
        }
        if !leaves.is_empty() {
            groups.push(named(format!("group{number}"), Children::Groups(leaves)));
        }
    }
    let root = named("dragonfly".to_owned(), Children::Groups(groups));
    Description {
        name: name.to_owned(),
        sites: vec![SiteDescription {
            root,
            cabling: vec![Cabling::new(1, 1, to_nodes); 3],
            missing: Vec::new(),
        }],
        kinds: vec![NodeKind { nic_bandwidth: to_nodes, ..NodeKind::default() }],
        wiring: WiringDescription::Dragonfly(wiring),
        ..Description::default()
    }
}
