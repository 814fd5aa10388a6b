//! The switches and cables of a fabric with port numbers, as in a subnet.

use super::names::{NameLimits, Names};
use crate::fabric::Fabric;
use crate::ids::{GroupIndex, NodeIndex};

pub(super) struct PhysicalSwitch {
    pub name: String,
    /// Level and index of the switch's group.
    pub group: (usize, GroupIndex),
    /// The number of ports of the switch, cabled or not; ports are numbered from 1.
    pub ports: u32,
    pub links: Vec<WiredPort>,
}

/// A cable, seen from one of its ends.
pub(super) struct WiredPort {
    pub port: u32,
    pub to: WiredDevice,
    pub to_port: u32,
    /// Bandwidth in bytes per second.
    pub bandwidth: f64,
}

#[derive(Clone, Copy)]
pub(super) enum WiredDevice {
    Node(NodeIndex),
    /// A switch, as an index into [`Wiring::switches`].
    Switch(usize),
}

/// The switches from the leaves up, and the links of every node.
pub(super) struct Wiring {
    pub switches: Vec<PhysicalSwitch>,
    pub nodes: Vec<Vec<WiredPort>>,
}

/// The parallel cables from a node or switch to one parent.
struct Bundle {
    lower: WiredDevice,
    upper: usize,
    /// The first port of the bundle at the lower end; its other cables use the next ports.
    up_port: u32,
    /// The numbers of the existing cables, and the number of possible ones.
    there: Vec<u32>,
    cables: u32,
    bandwidth: f64,
}

impl Wiring {
    pub(super) fn of(fabric: &Fabric, names: &mut Names) -> Wiring {
        let mut wiring = Wiring {
            switches: Vec::new(),
            nodes: (0..fabric.nodes()).map(|_| Vec::new()).collect(),
        };
        let first = wiring.name_switches(fabric, names);
        let bundles = all_bundles(fabric, &first);
        wiring.connect(fabric, &first, &bundles);
        wiring
    }

    /// Calls `see` for every bundle of parallel cables, in the order of their ids: the name and group of both ends, and
    /// the number of possible cables.
    pub(super) fn each_bundle(
        fabric: &Fabric,
        mut see: impl FnMut((&str, &str), (&str, &str), u32),
    ) {
        let mut wiring = Wiring { switches: Vec::new(), nodes: Vec::new() };
        let first = wiring.name_switches(fabric, &mut Names::new(NameLimits::SHOWN));
        let name = |device| match device {
            WiredDevice::Node(node) => (fabric.node_name(node), fabric.node_name(node)),
            WiredDevice::Switch(switch) => {
                let PhysicalSwitch { name, group: (level, group), .. } = &wiring.switches[switch];
                (name.as_str(), fabric.group_name(*level, *group))
            }
        };
        let bundles = all_bundles(fabric, &first);
        for bundle in &bundles {
            see(name(bundle.lower), name(WiredDevice::Switch(bundle.upper)), bundle.cables);
        }
    }

    /// Creates the switches without cables. Returns, by level from 1, the first switch of each group.
    fn name_switches(&mut self, fabric: &Fabric, names: &mut Names) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for level in 1..=fabric.depth() {
            let mut first = Vec::new();
            for group in 0..fabric.groups(level) {
                first.push(self.switches.len());
                if fabric.is_padding(level, group) {
                    continue;
                }
                let site = fabric.site_of_group(level, group);
                let width = fabric.width(site, level);
                let (own, given) =
                    (fabric.group_name(level, group), fabric.switch_names(level, group));
                for number in 0..width {
                    let name = match given.get(number as usize) {
                        Some(name) => name.clone(),
                        None if width == 1 => own.to_owned(),
                        None => format!("{own}-s{number}"),
                    };
                    let name =
                        names.unique("switch", &name, fabric.group_name(fabric.depth(), site));
                    let group = (level, group);
                    self.switches.push(PhysicalSwitch { name, group, ports: 0, links: Vec::new() });
                }
            }
            all.push(first);
        }
        all
    }

    /// Numbers the ports. On every switch, the ports down come first, in the order of what is below. The ports up start
    /// at the same number on all switches of a level of a site.
    fn connect(&mut self, fabric: &Fabric, first: &[Vec<usize>], bundles: &[Bundle]) {
        let mut down = vec![0; self.switches.len()];
        for bundle in bundles {
            down[bundle.upper] += bundle.cables;
        }
        let mut up_from = down.clone();
        for level in 1..=fabric.depth() {
            for site in 0..fabric.sites() {
                let groups = fabric.level_range(site, level);
                let start = first[level][groups.start as usize];
                let end = first[level].get(groups.end as usize);
                let end = end.or_else(|| first.get(level + 1).and_then(|above| above.first()));
                let range = start..end.copied().unwrap_or(self.switches.len());
                let most = down[range.clone()].iter().copied().max().unwrap_or(0);
                up_from[range].fill(most);
            }
        }
        for (switch, &ports) in self.switches.iter_mut().zip(&up_from) {
            switch.ports = ports;
        }
        let mut next = vec![0; self.switches.len()];
        for bundle in bundles {
            let base = match bundle.lower {
                WiredDevice::Node(_) => 0,
                WiredDevice::Switch(switch) => up_from[switch],
            };
            if let WiredDevice::Switch(switch) = bundle.lower {
                let last = base + bundle.up_port + bundle.cables;
                self.switches[switch].ports = self.switches[switch].ports.max(last);
            }
            for cable in &bundle.there {
                let (port, to_port) =
                    (base + bundle.up_port + cable + 1, next[bundle.upper] + cable + 1);
                let (to, bandwidth) = (WiredDevice::Switch(bundle.upper), bundle.bandwidth);
                let up = WiredPort { port, to, to_port, bandwidth };
                match bundle.lower {
                    WiredDevice::Node(node) => self.nodes[node as usize].push(up),
                    WiredDevice::Switch(switch) => self.switches[switch].links.push(up),
                }
                let to = bundle.lower;
                let link = WiredPort { port: to_port, to, to_port: port, bandwidth };
                self.switches[bundle.upper].links.push(link);
            }
            next[bundle.upper] += bundle.cables;
        }
        for switch in &mut self.switches {
            switch.links.sort_unstable_by_key(|link| link.port);
        }
    }
}

/// The bundles of all levels, in the order of their cables' ids.
fn all_bundles(fabric: &Fabric, first: &[Vec<usize>]) -> Vec<Bundle> {
    let mut bundles = Vec::new();
    for level in 0..fabric.depth() {
        for group in 0..fabric.groups(level) {
            if !fabric.uplinks(level, group).is_empty() {
                add_bundles(fabric, first, level, group, &mut bundles);
            }
        }
    }
    bundles
}

fn add_bundles(
    fabric: &Fabric,
    first: &[Vec<usize>],
    level: usize,
    group: GroupIndex,
    bundles: &mut Vec<Bundle>,
) {
    let site = fabric.site_of_group(level, group);
    let cabling = fabric.cabling(site, level);
    // Above padding, the first parent stands for all parents of the padded levels.
    let (mut above, mut step) = (level + 1, 1);
    let mut parent_group = fabric.parent(level, group);
    while fabric.is_padding(above, parent_group) {
        step *= fabric.cabling(site, above).parents as usize;
        parent_group = fabric.parent(above, parent_group);
        above += 1;
    }
    for switch in 0..fabric.width(site, level) {
        for parent in 0..cabling.parents {
            let there = (0..cabling.cables).filter(|&cable| {
                let id = fabric.cable(level, group, switch, parent, cable);
                id.is_some_and(|id| fabric.has_cable(id))
            });
            let lower = match level {
                0 => WiredDevice::Node(group),
                _ => WiredDevice::Switch(first[level][group as usize] + switch as usize),
            };
            let number = cabling.upper(switch, parent) as usize * step;
            bundles.push(Bundle {
                lower,
                upper: first[above][parent_group as usize] + number,
                up_port: parent * cabling.cables,
                there: there.collect(),
                cables: cabling.cables,
                bandwidth: cabling.bandwidth,
            });
        }
    }
}
