//! Dragonflies: Cray's Aries, HPE's Slingshot, and dragonfly+.

use super::{node_of_kind_0, shown};
use crate::check::{most_cables, too_many_cables};
use crate::description::{
    Cabling, Children, Description, Detours, DragonflyDescription, Group, SiteDescription,
    SwitchCable, WiringDescription,
};
use crate::error::InputError;
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
/// Bandwidth of a Slingshot or InfiniBand HDR link: 200 Gbit/s, in bytes per second.
const GBIT_200: f64 = 2.5e10;
/// The most groups that `slingshot(...)` and `dragonfly+(...)` make.
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
    let groups = names.collect();
    let wiring = DragonflyDescription { groups, cables, detours: None };
    let on_switch = |place: u32| nodes.saturating_sub(4 * place).min(4);
    dragonfly(name, wiring, ELECTRICAL, on_switch)
}

/// Groups of one shape. Nodes are spread evenly over the leaves of a group.
pub(super) struct Shape {
    nodes: u32,
    groups: u32,
    /// The switches of a group that have nodes.
    leaves: u32,
    /// Further switches, each joined to all leaves; 0: the leaves are joined all to all.
    spines: u32,
    /// Parallel cables between two switches of a group.
    parallel: u32,
    /// Cables between each two groups. Those of a group to all others go from its spines, or leaves, in turn.
    cables: u32,
    /// Bandwidth of a cable between switches, in bytes per second.
    bandwidth: f64,
    /// Bandwidth of a node, likewise.
    to_nodes: f64,
}

/// Frontier: 74 groups of 32 switches.
pub(super) const FRONTIER: Shape = Shape::of(9472, 74, 32, 0, 4);

/// JUPITER's Booster, as its centre describes it ("Configuration" of its user documentation): 25 groups of 240 nodes, 15
/// leaves and 16 spines. A node has four links of 200 Gbit/s, a cable between switches has 400. Assumed: a node is on one
/// leaf, whose 64 ports go half to its nodes and half to the spines; each spine has a cable to each group.
pub(super) const JUPITER: Shape =
    Shape { parallel: 2, bandwidth: 5e10, to_nodes: 1e11, ..Shape::of(6000, 25, 15, 16, 16) };

impl Shape {
    const fn of(nodes: u32, groups: u32, leaves: u32, spines: u32, cables: u32) -> Shape {
        let (bandwidth, to_nodes) = (GBIT_200, GBIT_200);
        Shape { nodes, groups, leaves, spines, parallel: 1, cables, bandwidth, to_nodes }
    }

    /// Parses the arguments of `slingshot(nodes=N, groups=G, switches=S, cables=C)`.
    pub fn slingshot(name: &str, arguments: &str) -> Result<Shape, InputError> {
        let keys = ["nodes=N", "groups=G", "switches=S", "cables=C"];
        let [nodes, groups, switches, cables] = numbers(name, arguments, keys)?;
        Shape::of(nodes, groups, switches, 0, cables).checked(name)
    }

    /// Parses the arguments of `dragonfly+(nodes=N, groups=G, leaves=L, spines=S, cables=C)`.
    pub fn dragonfly_plus(name: &str, arguments: &str) -> Result<Shape, InputError> {
        let keys = ["nodes=N", "groups=G", "leaves=L", "spines=S", "cables=C"];
        let [nodes, groups, leaves, spines, cables] = numbers(name, arguments, keys)?;
        Shape::of(nodes, groups, leaves, spines, cables).checked(name)
    }

    fn checked(self, name: &str) -> Result<Shape, InputError> {
        let Shape { nodes, groups, leaves, spines, cables, .. } = self;
        let gateways = if spines > 0 { spines } else { leaves };
        let fits = groups <= MOST_GROUPS
            && leaves.max(spines) <= MOST_SWITCHES
            && leaves + spines <= MOST_SWITCHES
            && cables <= gateways;
        if !fits || nodes % groups != 0 || nodes > 1 << 20 {
            let ends = if spines > 0 { "spines" } else { "switches" };
            return Err(InputError::whole(format!(
                "machine {name} needs at most {MOST_GROUPS} groups, {MOST_SWITCHES} switches in each and as many cables \
                 as {ends}, and the same number of nodes in each group"
            )));
        }
        let pairs = |count: u32| u64::from(count) * u64::from(count - 1) / 2;
        let inside = if spines > 0 { u64::from(leaves) * u64::from(spines) } else { pairs(leaves) };
        if u64::from(groups) * inside + pairs(groups) * u64::from(cables) > most_cables(nodes) {
            return Err(too_many_cables(name, nodes));
        }
        Ok(self)
    }

    /// Returns the machine.
    pub fn machine(&self, name: &str) -> Description {
        let &Shape { nodes, groups, leaves, spines, parallel, cables, bandwidth, to_nodes } = self;
        let size = leaves + spines;
        let (first_gate, gates) = if spines > 0 { (leaves, spines) } else { (0, leaves) };
        let mut joined = Vec::new();
        let mut join = |a, b, count| {
            joined.push(SwitchCable { between: (a, b), count, bandwidth });
        };
        for group in 0..groups {
            let first = group * size;
            for at in 0..leaves {
                for other in first_gate.max(at + 1)..size {
                    join(first + at, first + other, parallel);
                }
            }
            for other in group + 1..groups {
                let gate = |of: u32, place: u32| of * size + first_gate + place % gates;
                for cable in 0..cables {
                    join(
                        gate(group, (other - 1) * cables + cable),
                        gate(other, group * cables + cable),
                        1,
                    );
                }
            }
        }
        let switch = |group, place: u32| match place.checked_sub(first_gate) {
            Some(gate) => format!("g{group}s{gate}"),
            None => format!("g{group}l{place}"),
        };
        let names = |group| (0..size).map(|place| switch(group, place)).collect();
        let each = u64::from(nodes / groups.max(1));
        let groups = (0..groups).map(names).collect();
        let wiring = DragonflyDescription { groups, cables: joined, detours: None };
        let before =
            |place: u32| (u64::from(place.min(leaves)) * each / u64::from(leaves.max(1))) as u32;
        dragonfly(name, wiring, to_nodes, |place| before(place + 1) - before(place))
    }
}

/// Takes `detours=F` and `share=P` out of the arguments in the name of a machine: the name without them, and both. `None` if
/// neither is there.
///
/// # Errors
/// One of both is missing, or no number.
pub(super) fn without_detours(name: &str) -> Result<Option<(String, Detours)>, InputError> {
    let Some((family, arguments)) =
        name.strip_suffix(')').and_then(|inside| inside.split_once('('))
    else {
        return Ok(None);
    };
    let (mut part, mut share, mut others) = (None, None, Vec::new());
    for argument in arguments.split(',') {
        let (key, text) = argument.split_once('=').unwrap_or((argument, ""));
        let value = match key.trim() {
            "detours" => &mut part,
            "share" => &mut share,
            _ => {
                others.push(argument);
                continue;
            }
        };
        *value = Some(text.trim().parse::<f64>().map_err(|_| {
            InputError::whole(format!("machine {name}: {} is no number", shown(argument.trim())))
        })?);
    }
    let detours = match (part, share) {
        (None, None) => return Ok(None),
        (Some(part), Some(share)) => Detours { part, share },
        _ => {
            let what = "needs both detours=F and share=P, or neither";
            return Err(InputError::whole(format!("machine {name} {what}")));
        }
    };
    let plain = if others.is_empty() {
        family.to_owned()
    } else {
        format!("{family}({})", others.join(","))
    };
    Ok(Some((plain, detours)))
}

/// Returns a machine with detours, under this name.
///
/// # Errors
/// It is no dragonfly.
pub(super) fn with_detours(
    name: &str,
    mut machine: Description,
    detours: Detours,
) -> Result<Description, InputError> {
    let WiringDescription::Dragonfly(dragonfly) = &mut machine.wiring else {
        return Err(InputError::whole(format!(
            "machine {name} is no dragonfly: only they have detours and a share"
        )));
    };
    dragonfly.detours = Some(detours);
    name.clone_into(&mut machine.name);
    Ok(machine)
}

/// Parses arguments such as `nodes=8`, given the keys with the letters of their numbers. The last is 1 by default.
fn numbers<const KEYS: usize>(
    name: &str,
    arguments: &str,
    keys: [&str; KEYS],
) -> Result<[u32; KEYS], InputError> {
    let refuse = |what: String| InputError::whole(format!("machine {name}{what}"));
    let mut numbers = [0; KEYS];
    numbers[KEYS - 1] = 1;
    for argument in arguments.split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let (key, text) = argument.split_once('=').unwrap_or((argument, ""));
        let is_key = |known: &&str| known.split('=').next() == Some(key.trim());
        let Some(at) = keys.iter().position(is_key) else {
            let known = keys.join(", ");
            return Err(refuse(format!(": {} is none of {known}", shown(argument))));
        };
        let value = text.trim().parse::<u32>().ok().filter(|&value| value > 0);
        numbers[at] = value
            .ok_or_else(|| refuse(format!(": {} is not a number above 0", shown(argument))))?;
    }
    if numbers.contains(&0) {
        return Err(refuse(format!(" needs {}", keys[..KEYS - 1].join(", "))));
    }
    Ok(numbers)
}

/// Returns the machine of a dragonfly. `on_switch` is the number of nodes of the switch at a place of its group.
fn dragonfly(
    name: &str,
    wiring: DragonflyDescription,
    to_nodes: f64,
    on_switch: impl Fn(u32) -> u32,
) -> Description {
    let stem = name.split(['(', '+']).next().unwrap_or(name);
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
