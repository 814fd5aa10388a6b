//! The output of `ibnetdiscover`: a running `InfiniBand` subnet as its subnet manager sees it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::bundles::Bundles;
use super::levels::{SubnetLevels, SubnetUplink};
use super::natural::natural_order;
use super::planes::{Planes, SitePart, number_planes};
use super::subnet::{CableEnd, Subnet};
use super::trim::{Nodes, trim};
use super::{MachineOptions, Read, UNNAMED};
use crate::description::{
    Cabling, Children, Description, Group, MissingCable, NodeDescription, SiteDescription,
};
use crate::error::{InputError, shown};
use crate::hostlist::expand;
use crate::node_kind::NodeKind;

/// Reads the output of `ibnetdiscover`. A leaf is a switch with a host; the level of a switch is its distance in links
/// from the nearest host. A group consists of the switches of a level that cables below connect. Parallel switches are
/// ordered so that the cabling is that of a PGFT. Cables that this cabling implies and the subnet lacks are marked as
/// missing. The bandwidth of a level is that of most of its cables.
///
/// Hosts are named by the first word of their description. They are ordered by leaf (leaves by name, in natural order),
/// then by port. Several adapters of a host become parallel cables, or rails if they lead to several leaves. A group of
/// several switches is named by the part that their names share. Routers and adapters inside switches are skipped;
/// parts that no cable connects become sites. All nodes are of the default kind, with the network interfaces found.
///
/// A host on leaf switches of several groups belongs to one of them. Hosts on switches above the leaves and switches
/// without nodes are skipped ([`trim`]).
///
/// # Errors
/// With its line: a line that is not from `ibnetdiscover`; a port whose far end is not described or leads elsewhere (as
/// in a truncated file); a host cabled to a host; a switch whose cables do not fit a parallel-port fat tree.
pub fn ibnetdiscover(text: &str) -> Result<Description, InputError> {
    Ok(discover(text)?.description)
}

/// Reads the same as [`ibnetdiscover`], with only the hosts that the options name, and notes what was skipped.
pub(super) fn whole(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let subnet = Subnet::parse(text)?;
    let mut notes = Vec::new();
    let hosts = options.hosts.as_deref().map(hosts_of).transpose()?;
    let nodes: Nodes = hosts.as_ref().map(|hosts| {
        let there: HashSet<&str> =
            subnet.vertices.iter().filter(|v| v.is_host).map(|v| v.name.as_str()).collect();
        notes.extend(absent_hosts(hosts, |host| there.contains(host)));
        hosts.iter().map(String::as_str).collect()
    });
    let found = discovered(subnet, &nodes)?;
    notes.extend(found.subnet.notes);
    Ok(Read::with_notes(found.description, notes))
}

/// Parses the names of `--hosts`.
pub(super) fn hosts_of(list: &str) -> Result<Vec<String>, InputError> {
    expand(list).map_err(|error| InputError::whole(format!("--hosts: {}", error.message)))
}

/// A sentence about hosts of `--hosts` without a cable; `None` if there are none.
pub(super) fn absent_hosts(hosts: &[String], is_there: impl Fn(&str) -> bool) -> Option<String> {
    let absent: Vec<&String> = hosts.iter().filter(|host| !is_there(host)).collect();
    let first = shown(absent.first()?);
    let unit = if absent.len() == 1 { "node" } else { "nodes" };
    Some(format!("{} {unit} of --hosts, such as {first}, have no cable", absent.len()))
}

/// A subnet, its machine, and the position of each cable in that machine.
pub(super) struct Discovery {
    pub subnet: Subnet,
    pub description: Description,
    /// For each site, its cables.
    pub cables: Vec<Vec<Cabled>>,
}

/// A cable of the subnet and its position in the cabling of its site.
pub(super) struct Cabled {
    pub lower: CableEnd,
    pub upper: CableEnd,
    /// The position, in the form used for missing cables.
    pub place: MissingCable,
}

/// The cabling of every level of a site, the cables found, and the positions without a cable.
#[derive(Default)]
struct Laid {
    cabling: Vec<Cabling>,
    there: Vec<Cabled>,
    missing: Vec<MissingCable>,
}

/// Reads the same as [`ibnetdiscover`] and keeps the ports.
pub(super) fn discover(text: &str) -> Result<Discovery, InputError> {
    discovered(Subnet::parse(text)?, &None)
}

/// Returns the machine of a subnet; its nodes are the named hosts.
pub(super) fn discovered(mut subnet: Subnet, nodes: &Nodes) -> Result<Discovery, InputError> {
    let skipped = trim(&mut subnet, nodes);
    subnet.notes.extend(skipped);
    let levels = SubnetLevels::of(&subnet)?;
    let orders = Orders::of(&subnet, &levels);
    let mut roots = levels.roots.clone();
    roots.sort_by(|a, b| natural_order(&orders.key[a.0][a.1], &orders.key[b.0][b.1]));
    let mut taken = HashSet::new();
    let mut sites = Vec::with_capacity(roots.len());
    let mut cables = Vec::with_capacity(roots.len());
    let mut mixed = Vec::new();
    for (index, &(level, group)) in roots.iter().enumerate() {
        let (site, order) = part_of(&levels, &orders, level, group);
        let host = &subnet.vertices[site.vertices[0][0]];
        if level == 0 {
            let message = format!("host {} is cabled to no switch", host.name);
            return Err(InputError::at(host.line, message));
        }
        let planes = number_planes(&subnet, &levels, &site)?;
        let reader = SiteReader { subnet: &subnet, levels: &levels, orders: &orders, planes };
        let Laid { cabling, there, missing } = reader.cabling(&site, &order)?;
        cables.push(there);
        for (level, uplinks) in site.uplinks.iter().enumerate() {
            mixed.extend(mixed_speeds(&subnet, level, uplinks, cabling[level].bandwidth));
        }
        let mut names = HashSet::new();
        let mut root = reader.group(level, group, &mut names);
        if !taken.insert(root.name.clone()) {
            root.name = format!("{}-{index}", root.name);
            taken.insert(root.name.clone());
        }
        sites.push(SiteDescription { root, cabling, missing });
    }
    subnet.notes.extend(mixed);
    let first = sites[0].cabling[0];
    let kind = NodeKind {
        nics: first.parents.saturating_mul(first.cables),
        nic_bandwidth: first.bandwidth,
        ..NodeKind::default()
    };
    let description = Description {
        name: UNNAMED.to_owned(),
        sites,
        wans: Vec::new(),
        kinds: vec![kind],
        domains: Vec::new(),
        ..Description::default()
    };
    Ok(Discovery { subnet, description, cables })
}

/// The children of every group, in order, and the name by which a group is sorted: that of its first leaf.
struct Orders {
    children: Vec<Vec<Vec<usize>>>,
    key: Vec<Vec<String>>,
}

impl Orders {
    fn of(subnet: &Subnet, levels: &SubnetLevels) -> Orders {
        let name = |vertex: &usize| subnet.vertices[*vertex].name.as_str();
        // For every host, the leaf of lowest name and the port there.
        let mut leaf_port: HashMap<usize, (&str, u32)> = HashMap::new();
        for link in levels.uplinks.first().into_iter().flatten() {
            let here = (name(&link.upper.vertex), link.upper.port);
            let first = leaf_port.entry(link.lower.vertex).or_insert(here);
            if natural_order(here.0, first.0).then(here.1.cmp(&first.1)).is_lt() {
                *first = here;
            }
        }
        let mut orders = Orders { children: Vec::new(), key: Vec::new() };
        for (level, groups) in levels.groups.iter().enumerate() {
            let (mut all_children, mut keys) = (Vec::new(), Vec::new());
            for group in groups {
                let mut children = group.children.clone();
                if level == 1 {
                    children.sort_by_key(|&host| {
                        let vertex = levels.groups[0][host].switches[0];
                        let (leaf, port) = leaf_port.get(&vertex).copied().unwrap_or_default();
                        (port, leaf, vertex)
                    });
                } else if level > 1 {
                    let key = &orders.key[level - 1];
                    children.sort_by(|&a, &b| natural_order(&key[a], &key[b]));
                }
                let key = match children.first() {
                    Some(&first) if level > 1 => orders.key[level - 1][first].clone(),
                    _ => {
                        let first =
                            group.switches.iter().map(name).min_by(|a, b| natural_order(a, b));
                        first.unwrap_or_default().to_owned()
                    }
                };
                all_children.push(children);
                keys.push(key);
            }
            orders.children.push(all_children);
            orders.key.push(keys);
        }
        orders
    }
}

/// Everything in the site of a root group, and the number of each of its groups by level.
fn part_of<'a>(
    levels: &'a SubnetLevels,
    orders: &Orders,
    top: usize,
    root: usize,
) -> (SitePart<'a>, Vec<Vec<usize>>) {
    let mut places = vec![vec![root]];
    for level in (1..=top).rev() {
        let above = &places[places.len() - 1];
        let below = above.iter().flat_map(|&group| orders.children[level][group].iter().copied());
        places.push(below.collect());
    }
    places.reverse();
    let mut vertices = Vec::with_capacity(top + 1);
    for (level, groups) in places.iter().enumerate() {
        let switches = groups.iter().flat_map(|&group| &levels.groups[level][group].switches);
        vertices.push(switches.copied().collect::<Vec<usize>>());
    }
    let uplinks = (0..top).map(|level| {
        let inside: HashSet<usize> = vertices[level].iter().copied().collect();
        levels.uplinks[level].iter().filter(|link| inside.contains(&link.lower.vertex)).collect()
    });
    let uplinks = uplinks.collect();
    (SitePart { vertices, uplinks }, places)
}

struct SiteReader<'a> {
    subnet: &'a Subnet,
    levels: &'a SubnetLevels,
    orders: &'a Orders,
    planes: Vec<Planes>,
}

impl SiteReader<'_> {
    fn cabling(&self, part: &SitePart, places: &[Vec<usize>]) -> Result<Laid, InputError> {
        let mut laid = Laid::default();
        for (level, uplinks) in part.uplinks.iter().enumerate() {
            let parents = self.planes[level + 1].parents;
            let bundles = Bundles::of(uplinks, &self.planes[level + 1]);
            let width = self.planes[level].width;
            let implied = [width, parents, bundles.cables]
                .into_iter()
                .fold(places[level].len(), usize::saturating_mul);
            if implied / 2 > uplinks.len() {
                return Err(self.irregular(&part.vertices[level], uplinks));
            }
            laid.cabling.push(Cabling {
                parents: parents as u32,
                cables: bundles.cables as u32,
                bandwidth: usual_bandwidth(uplinks),
                joined: self.planes[level + 1].below_joined,
            });
            self.fill_places(level, &places[level], &bundles, &mut laid);
        }
        Ok(laid)
    }

    fn irregular(&self, lower: &[usize], uplinks: &[&SubnetUplink]) -> InputError {
        let mut count: HashMap<usize, usize> = lower.iter().map(|&vertex| (vertex, 0)).collect();
        for link in uplinks {
            *count.entry(link.lower.vertex).or_default() += 1;
        }
        let least = lower.iter().copied().min_by_key(|vertex| count[vertex]).unwrap_or_default();
        let most = lower.iter().copied().max_by_key(|vertex| count[vertex]).unwrap_or_default();
        let (few, many) = (&self.subnet.vertices[least], &self.subnet.vertices[most]);
        InputError::at(
            few.line,
            format!(
                "more than half of the cables of a regular tree would be missing above {} and its \
                 like: it has {} uplinks where {} (line {}) has {}",
                few.name, count[&least], many.name, many.line, count[&most]
            ),
        )
    }

    /// Assigns a position to every cable of a level, and records the positions without a cable.
    fn fill_places(&self, level: usize, groups: &[usize], bundles: &Bundles, laid: &mut Laid) {
        let parents = self.planes[level + 1].parents;
        for (index, &group) in groups.iter().enumerate() {
            let mut switch_at = vec![None; self.planes[level].width];
            for &vertex in &self.levels.groups[level][group].switches {
                switch_at[self.planes[level].of[&vertex]] = Some(vertex);
            }
            for (switch, vertex) in switch_at.into_iter().enumerate() {
                for parent in 0..parents {
                    let place = |cable: usize| MissingCable {
                        level,
                        group: index as u32,
                        switch: switch as u32,
                        parent: parent as u32,
                        cable: cable as u32,
                    };
                    let mut free = vec![true; bundles.cables];
                    let cabled = vertex.into_iter().flat_map(|v| bundles.numbered(v, parent));
                    laid.there.extend(cabled.map(|(cable, link)| {
                        free[cable] = false;
                        Cabled { lower: link.lower, upper: link.upper, place: place(cable) }
                    }));
                    laid.missing
                        .extend((0..bundles.cables).filter(|&cable| free[cable]).map(place));
                }
            }
        }
    }

    fn group(&self, level: usize, group: usize, taken: &mut HashSet<String>) -> Group {
        let (name, switches) = self.names(level, group);
        let first = &self.orders.key[level][group];
        let name = [name, format!("{first}-level{level}")]
            .into_iter()
            .find(|name| !taken.contains(name))
            .unwrap_or_else(|| format!("level{level}-{group}"));
        taken.insert(name.clone());
        let below = &self.orders.children[level][group];
        let children = if level == 1 {
            let node = |&host: &usize| {
                let vertex = self.levels.groups[0][host].switches[0];
                NodeDescription { name: self.subnet.vertices[vertex].name.clone(), kind: 0 }
            };
            Children::Nodes(below.iter().map(node).collect())
        } else {
            Children::Groups(
                below.iter().map(|&child| self.group(level - 1, child, taken)).collect(),
            )
        };
        Group { name, switches, children }
    }

    /// The name of a group, and of its switches if they have names of their own.
    fn names(&self, level: usize, group: usize) -> (String, Vec<String>) {
        let planes = &self.planes[level];
        let mut there: Vec<(usize, &str)> = self.levels.groups[level][group]
            .switches
            .iter()
            .map(|vertex| (planes.of[vertex], self.subnet.vertices[*vertex].name.as_str()))
            .collect();
        there.sort_unstable();
        if planes.width == 1 {
            return (there[0].1.to_owned(), Vec::new());
        }
        let numbered = |(number, name): &(usize, &'_ str)| {
            name.strip_suffix(&format!("-s{number}")).map(str::to_owned)
        };
        if let Some(stem) = there.first().and_then(numbered)
            && there.iter().all(|switch| numbered(switch).as_deref() == Some(&stem))
        {
            return (stem, Vec::new());
        }
        let name = shared_stem(&there).unwrap_or_else(|| there[0].1.to_owned());
        let mut switches: Vec<String> =
            (0..planes.width).map(|number| format!("{name}-s{number}")).collect();
        for (number, own) in there {
            own.clone_into(&mut switches[number]);
        }
        (name, switches)
    }
}

/// The common beginning of names, up to the number in which they differ; `None` if it is empty.
fn shared_stem(names: &[(usize, &str)]) -> Option<String> {
    let (_, first) = names.first()?;
    let shared = names.iter().fold(*first, |stem: &str, (_, name)| {
        let same = stem.char_indices().zip(name.chars()).find(|((_, a), b)| a != b);
        let end = same.map_or(stem.len().min(name.len()), |((place, _), _)| place);
        &stem[..end]
    });
    let digit = |letter: char| letter.is_ascii_digit();
    // `agg-1-1` must not be the common part of `agg-1-10` and `agg-1-11`.
    let cut = names.iter().any(|(_, name)| name[shared.len()..].starts_with(digit));
    let stem = if cut { shared.trim_end_matches(digit) } else { shared };
    let stem = stem.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    (!stem.is_empty()).then(|| format!("{stem}{}", shared_tail(names, stem.len())))
}

/// The common end of names, starting at a separator: `-04` of `leaf-01-04` and `leaf-02-04`. The first `taken` bytes
/// are not used.
fn shared_tail<'a>(names: &[(usize, &'a str)], taken: usize) -> &'a str {
    let [(_, first), others @ ..] = names else { return "" };
    let mut shared = first.len() - taken.min(first.len());
    for (_, name) in others {
        let same = first.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
        shared = shared.min(same).min(name.len() - taken.min(name.len()));
    }
    let is_start = |&start: &usize| {
        first.is_char_boundary(start) && first[start..].starts_with(|c: char| !c.is_alphanumeric())
    };
    // At least one character before it must remain, because the names differ there.
    let start = (first.len() - shared..first.len()).filter(|&start| start > taken).find(is_start);
    start.map_or("", |start| &first[start..])
}

/// Counts cables by bandwidth, ascending. (The bits of positive numbers sort like the numbers.)
fn bandwidths(uplinks: &[&SubnetUplink]) -> BTreeMap<u64, usize> {
    let mut count: BTreeMap<u64, usize> = BTreeMap::new();
    for link in uplinks {
        *count.entry(link.bandwidth.to_bits()).or_default() += 1;
    }
    count
}

/// The most frequent bandwidth; the greatest if several are equally frequent.
fn usual_bandwidth(uplinks: &[&SubnetUplink]) -> f64 {
    let count = bandwidths(uplinks);
    count.into_iter().max_by_key(|&(_, count)| count).map_or(1.0, |(bits, _)| f64::from_bits(bits))
}

/// A sentence about cables of a level with another bandwidth than the one assigned to all; `None` if there are none.
fn mixed_speeds(
    subnet: &Subnet,
    level: usize,
    uplinks: &[&SubnetUplink],
    all: f64,
) -> Option<String> {
    let other = uplinks.iter().find(|link| link.bandwidth.to_bits() != all.to_bits())?;
    let counts = bandwidths(uplinks);
    let listed = |(bits, count): (&u64, &usize)| {
        format!("{count} of {} GB/s", rounded(f64::from_bits(*bits) / 1e9))
    };
    let counts: Vec<String> = counts.iter().map(listed).collect();
    let [lower, upper] = [other.lower, other.upper].map(|end| &subnet.vertices[end.vertex].name);
    let what = match level {
        0 => "cables of nodes".to_owned(),
        level => format!("cables above level {level}"),
    };
    let all = rounded(all / 1e9);
    Some(format!(
        "{what} have several speeds ({}): all count as {all} GB/s, also that from {lower} to {upper}",
        counts.join(", ")
    ))
}

/// Rounds to two decimals.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
