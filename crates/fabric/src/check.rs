//! Checks of a description before the fabric is built.

use crate::description::{Cabling, Children, Description, Group, WanDescription};
use crate::error::{InputError, is_printable, shown};
use crate::hostlist::MOST_NAMES;
use crate::node_kind::NodeKind;

/// The deepest tree that is accepted.
pub(crate) const DEEPEST: usize = 16;
/// The most nodes that are accepted.
pub(crate) const MOST_NODES: usize = MOST_NAMES;
/// The most switches that are accepted, including parallel ones and padding of short branches.
pub(crate) const MOST_SWITCHES: u64 = 1 << 20;
/// The most cables: a million nodes under three levels at full bandwidth.
const MOST_CABLES: u64 = 1 << 22;
/// The most cables of a small machine; a larger one may have `MOST_CABLES_OF_NODE` for each node.
const MOST_CABLES_OF_FEW: u64 = 1 << 16;
const MOST_CABLES_OF_NODE: u64 = 64;
/// The most sites that are accepted; routes between sites are a table of all pairs.
const MOST_SITES: usize = 1024;

fn not_negative(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

pub(crate) fn positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

pub(crate) fn too_many_nodes(name: &str) -> InputError {
    InputError::whole(format!("{name} is too large: more than {MOST_NODES} nodes"))
}

pub(crate) fn too_many_switches(name: &str) -> InputError {
    InputError::whole(format!("{name} is too large: more than {MOST_SWITCHES} switches"))
}

/// The most cables of a machine with this number of nodes.
pub(crate) fn most_cables(nodes: u32) -> u64 {
    (u64::from(nodes) * MOST_CABLES_OF_NODE).clamp(MOST_CABLES_OF_FEW, MOST_CABLES)
}

pub(crate) fn too_many_cables(name: &str, nodes: u32) -> InputError {
    let most = most_cables(nodes);
    InputError::whole(format!("{name} is too large: more than {most} cables for {nodes} nodes"))
}

/// Checks that a name has no characters that a terminal obeys, because every command prints names.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), InputError> {
    if name.chars().all(is_printable) {
        return Ok(());
    }
    Err(InputError::whole(format!("{what} {} holds a control character", shown(name))))
}

pub(crate) fn check_kinds(description: &Description) -> Result<(), InputError> {
    if description.kinds.is_empty() {
        return Err(InputError::whole("the machine has no kind of node"));
    }
    for kind in &description.kinds {
        check_kind(kind).map_err(|(_, message)| InputError::whole(message))?;
    }
    Ok(())
}

/// Checks the values of a node kind. If one is impossible, returns its key and a sentence that names both.
pub(crate) fn check_kind(kind: &NodeKind) -> Result<(), (&'static str, String)> {
    let refuse = |key, needs: &str, value: &dyn std::fmt::Display| {
        Err((key, format!("{key} of a node must be {needs}, not {value}")))
    };
    // A node may have less than one core to give; then it has none.
    let counts = [("sockets", kind.sockets), ("nics", kind.nics)];
    if let Some((key, value)) = counts.into_iter().find(|&(_, value)| value == 0) {
        return refuse(key, "at least 1", &value);
    }
    if kind.sockets.checked_mul(kind.cores_per_socket).is_none() {
        let needs = format!("at most {} on {} sockets", u32::MAX / kind.sockets, kind.sockets);
        return refuse("cores-per-socket", &needs, &kind.cores_per_socket);
    }
    let speeds = [
        ("core-speed", Some(kind.core_speed)),
        ("nic-bandwidth", Some(kind.nic_bandwidth)),
        ("flow-bandwidth", kind.flow_bandwidth),
        ("copy-bandwidth", Some(kind.copy_bandwidth)),
        ("memory-bandwidth", Some(kind.memory_bandwidth)),
    ];
    let bad = |&(_, value): &(_, Option<f64>)| value.is_some_and(|value| !positive(value));
    if let Some((key, Some(value))) = speeds.into_iter().find(bad) {
        return refuse(key, "a number above 0", &value);
    }
    let latencies = [("latency", kind.latency), ("copy-latency", kind.copy_latency)];
    if let Some((key, value)) = latencies.into_iter().find(|&(_, value)| !not_negative(value)) {
        return refuse(key, "a number from 0", &value);
    }
    let factors = kind.penalty.factors();
    if let Some((name, value)) = factors.iter().find(|&&(_, factor)| !not_negative(factor)) {
        return Err((
            "penalty",
            format!("{name} of a node's penalty must be a number from 0, not {value}"),
        ));
    }
    kind.resources.check().map_err(|message| ("resources", message))
}

pub(crate) fn check_cabling(
    site: &str,
    cabling: &[Cabling],
    depth: usize,
) -> Result<(), InputError> {
    if cabling.len() != depth {
        return Err(InputError::whole(format!(
            "{site} has {depth} levels of switches, but cabling for {}",
            cabling.len()
        )));
    }
    for (level, c) in cabling.iter().enumerate() {
        if c.parents == 0 || c.cables == 0 || !positive(c.bandwidth) {
            return Err(InputError::whole(format!(
                "{site}: level {} needs parents, cables and bandwidth above 0, not {}, {}, {} B/s",
                level + 1,
                c.parents,
                c.cables,
                c.bandwidth
            )));
        }
        if level == 0 && c.joined {
            return Err(InputError::whole(format!(
                "{site}: only switches can be joined, not nodes, so the first level of joined must be false"
            )));
        }
    }
    Ok(())
}

pub(crate) fn depth_of(group: &Group, level: usize) -> Result<usize, InputError> {
    if level > DEEPEST {
        return Err(InputError::whole(format!(
            "{} lies more than {DEEPEST} levels deep",
            group.name
        )));
    }
    match &group.children {
        Children::Nodes(nodes) if nodes.is_empty() => {
            Err(InputError::whole(format!("switch {} has no nodes", group.name)))
        }
        Children::Nodes(_) => Ok(1),
        Children::Groups(groups) => {
            let mut deepest = 0;
            for child in groups {
                deepest = deepest.max(depth_of(child, level + 1)?);
            }
            if deepest == 0 {
                return Err(InputError::whole(format!("switch {} has no switches", group.name)));
            }
            Ok(deepest + 1)
        }
    }
}

pub(crate) fn check_sites(description: &Description) -> Result<(), InputError> {
    match description.sites.len() {
        0 => Err(InputError::whole("the machine has no site")),
        1..=MOST_SITES => Ok(()),
        count => Err(InputError::whole(format!(
            "the machine has {count} sites (trees that nothing joins), more than {MOST_SITES}"
        ))),
    }
}

pub(crate) fn check_wan(wan: &WanDescription) -> Result<(), InputError> {
    let latency = wan.latency.is_finite() && wan.latency >= 0.0;
    if wan.between.0 != wan.between.1 && latency && positive(wan.bandwidth) {
        return Ok(());
    }
    Err(InputError::whole(format!(
        "the WAN link between {} and {} must join two sites with a latency of at least 0 and a \
         bandwidth above 0, not {} s and {} B/s",
        wan.between.0, wan.between.1, wan.latency, wan.bandwidth
    )))
}
