//! Built-in machines, by name.

mod dragonfly;
mod hyperx;
mod nvl72;
mod torus;

use crate::description::{Cabling, Children, Description, Group, NodeDescription, SiteDescription};
use crate::error::{InputError, shown};
use crate::node_kind::NodeKind;
use dragonfly::Shape;

/// The names that [`preset`] accepts, each with a description.
pub const PRESETS: [(&str, &str); 16] = [
    ("cab", "1,296 nodes: 4 pods of 18 leaves of 18, 36-port switches, every port used (SC'18)"),
    ("pinot", "2,592 nodes: cab with 8 pods, full bisection; the wiring of its core is assumed"),
    ("sc18-network", "10,648 nodes: 22 of 44 pods of radix-44 switches; core wiring assumed"),
    (
        "nvl72-5000",
        "5,040 nodes of 4 GPUs: 35 units of 8 NVL72 racks, 4 rails; spines and core assumed",
    ),
    ("nvl72(units=U)", "U units of 8 NVL72 racks of 18 nodes: 144 U nodes, 576 U GPUs"),
    ("fat-tree(radix=R, pods=P)", "a full fat tree of radix R; pods= takes fewer than R pods"),
    (
        "theta",
        "4,392 nodes: dragonfly of 12 groups of 96 Aries routers; cables of its 9-group state continued, and nodes placed, as assumed",
    ),
    ("edison", "5,760 nodes: dragonfly of 15 groups of 96 Aries routers"),
    (
        "frontier",
        "9,472 nodes: dragonfly of 74 groups of 32 Slingshot switches, 4 cables between groups; their order and 4 nodes on each switch assumed",
    ),
    (
        "slingshot(nodes=N, groups=G, switches=S, cables=C)",
        "a dragonfly of G groups of S switches joined all to all, C cables between each two groups; all dragonflies take detours=F, share=P",
    ),
    (
        "dragonfly+(nodes=N, groups=G, leaves=L, spines=S, cables=C)",
        "a dragonfly+ (megafly): in each of G groups L leaves joined to all of S spines; C cables between each two groups",
    ),
    (
        "jupiter",
        "6,000 nodes: dragonfly+ of 25 groups of 15 leaves and 16 spines; one leaf for each node, and all cables, assumed",
    ),
    (
        "torus(size=AxBxC, nodes=N, cube=PxQxR)",
        "a torus of 2 to 6 dimensions (8m: 8 without wrap), N nodes on each router; cube=: a pod of such cubes",
    ),
    (
        "hyperx(size=AxB, nodes=N, cables=PxQ)",
        "a HyperX of 1 to 4 dimensions, N nodes on each switch; P, Q: parallel cables between two switches",
    ),
    (
        "titan",
        "18,688 nodes: torus of 25 x 16 x 24 Gemini routers; which have no nodes, and bandwidths, assumed",
    ),
    (
        "tpu-v4",
        "4,096 chips: 64 cubes of 4 x 4 x 4 joined by optical switches; a node is a chip, 50 GB/s each link",
    ),
];

pub(crate) use dragonfly::{ELECTRICAL, OPTICAL, dragonfly_of};

/// Bandwidth of an InfiniBand QDR 4x cable: 32 Gbit/s of data, in bytes per second.
pub(crate) const QDR: f64 = 4e9;
/// NVLink 5 bandwidth of a node with four GPUs, 900 GB/s per GPU and direction (NVIDIA GB200 NVL72), in bytes per
/// second.
pub(crate) const NVLINK: f64 = 3.6e12;

/// Returns the machine of this name; `None` if there is none.
///
/// # Errors
/// Parameters of `fat-tree(...)`, `nvl72(...)`, `slingshot(...)`, `dragonfly+(...)`, `torus(...)` or `hyperx(...)` that are malformed or out of range.
pub fn preset(name: &str) -> Option<Result<Description, InputError>> {
    let (plain, detours) = match dragonfly::without_detours(name) {
        Ok(None) => return plain_preset(name),
        Ok(Some(parts)) => parts,
        Err(error) => return Some(Err(error)),
    };
    plain_preset(&plain).map(|machine| dragonfly::with_detours(name, machine?, detours))
}

/// As [`preset`], for names without detours.
fn plain_preset(name: &str) -> Option<Result<Description, InputError>> {
    let machine = match name {
        "cab" => pgft("cab", &[18, 18, 4], &[1, 18, 2], &[1, 1, 9]),
        "pinot" => pgft("pinot", &[18, 18, 8], &[1, 18, 6], &[1, 1, 3]),
        "sc18-network" => pgft("sc18-network", &[22, 22, 22], &[1, 22, 11], &[1, 1, 2]),
        "nvl72-5000" => nvl72::nvl72("nvl72-5000", 35),
        "theta" => dragonfly::aries("theta", 12, 4, 366),
        "edison" => dragonfly::aries("edison", 15, 2, 384),
        "frontier" => dragonfly::FRONTIER.machine("frontier"),
        "jupiter" => dragonfly::JUPITER.machine("jupiter"),
        "titan" => torus::titan(),
        "tpu-v4" => torus::tpu_v4(),
        _ => {
            let (family, arguments) = name.strip_suffix(')')?.split_once('(')?;
            let made = |shape: Shape| shape.machine(name);
            return match family {
                "fat-tree" => Some(fat_tree_from(name, arguments)),
                "nvl72" => Some(nvl72::from_arguments(name, arguments)),
                "slingshot" => Some(Shape::slingshot(name, arguments).map(made)),
                "dragonfly+" => Some(Shape::dragonfly_plus(name, arguments).map(made)),
                "torus" => Some(torus::from_arguments(name, arguments)),
                "hyperx" => Some(hyperx::from_arguments(name, arguments)),
                _ => None,
            };
        }
    };
    Some(Ok(machine))
}

fn fat_tree_from(name: &str, arguments: &str) -> Result<Description, InputError> {
    let (mut radix, mut pods) = (None, None);
    for argument in arguments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        let value = |text: &str| {
            text.trim().parse::<u32>().map_err(|_| {
                InputError::whole(format!("machine {name}: {} is not a whole number", shown(text)))
            })
        };
        match argument.split_once('=').map(|(key, text)| (key.trim(), text)) {
            Some(("radix", text)) => radix = Some(value(text)?),
            Some(("pods", text)) => pods = Some(value(text)?),
            _ => {
                return Err(InputError::whole(format!(
                    "machine {name}: {} is neither radix=R nor pods=P",
                    shown(argument)
                )));
            }
        }
    }
    let radix = radix.ok_or_else(|| InputError::whole(format!("machine {name} has no radix=R")))?;
    fat_tree(radix, pods.unwrap_or(radix))
}

/// Returns a full three-level fat tree of `radix`-port switches, with `pods` of its `radix` pods. Each leaf has `radix
/// / 2` nodes, each pod `radix / 2` leaves.
///
/// # Errors
/// An odd radix, a radix outside 2 to 128, or more pods than the radix.
pub fn fat_tree(radix: u32, pods: u32) -> Result<Description, InputError> {
    if !radix.is_multiple_of(2) || !(2..=128).contains(&radix) {
        return Err(InputError::whole(format!(
            "fat-tree: radix must be even and from 2 to 128, not {radix}"
        )));
    }
    if pods == 0 || pods > radix {
        return Err(InputError::whole(format!(
            "fat-tree: pods must be from 1 to the radix {radix}, not {pods}"
        )));
    }
    let half = radix / 2;
    let mut machine = pgft("fat-tree", &[half, half, pods], &[1, half, half], &[1, 1, 1]);
    machine.name = format!("fat-tree(radix={radix}, pods={pods})");
    Ok(machine)
}

/// Returns a regular machine PGFT(children; parents; cables). The three lists have equal lengths, with levels from the
/// nodes up. Nodes are named `{name}1`, `{name}2`, ...; leaves `leaf0`, ...; pods `pod0`, ...; the top `core`.
pub fn pgft(name: &str, children: &[u32], parents: &[u32], cables: &[u32]) -> Description {
    let depth = children.len();
    let mut nodes = (1..).map(|number: u64| node_of_kind_0(format!("{name}{number}")));
    let root = regular_group("core", children, depth, &mut vec![0; depth + 1], &mut nodes);
    let cabling = parents
        .iter()
        .zip(cables)
        .map(|(&parents, &cables)| Cabling::new(parents, cables, QDR))
        .collect();
    Description {
        name: name.to_owned(),
        sites: vec![SiteDescription { root, cabling, missing: Vec::new() }],
        wans: Vec::new(),
        kinds: vec![NodeKind::default()],
        domains: Vec::new(),
        ..Description::default()
    }
}

fn node_of_kind_0(name: String) -> NodeDescription {
    NodeDescription { name, kind: 0 }
}

/// Returns the regular group at `level` of a tree whose root is named `root`. Takes its nodes from `nodes`; `next`
/// counts the groups made so far at each level.
pub(crate) fn regular_group(
    root: &str,
    children: &[u32],
    level: usize,
    next: &mut [u32],
    nodes: &mut dyn Iterator<Item = NodeDescription>,
) -> Group {
    let index = next[level];
    next[level] += 1;
    let name = match (level, children.len()) {
        (level, depth) if level == depth => root.to_owned(),
        (1, _) => format!("leaf{index}"),
        (2, _) => format!("pod{index}"),
        _ => format!("level{level}-{index}"),
    };
    let below = children[level - 1] as usize;
    let children = if level == 1 {
        Children::Nodes(nodes.take(below).collect())
    } else {
        let child = |_| regular_group(root, children, level - 1, next, nodes);
        Children::Groups((0..below).map(child).collect())
    };
    Group { name, switches: Vec::new(), children }
}
