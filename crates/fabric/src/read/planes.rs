//! Numbers the parallel switches of the groups of a site so that the cabling is that of a PGFT.
//!
//! In a PGFT, switch `u` of a group is cabled to the switches `u * parents + a` of the group above, for `a` in
//! `0..parents`. So switches with the same number in sibling groups share their parents. From the top down, switches
//! that share a parent of one plane form one plane. From the hosts up, the planes above plane `u` get the numbers `u *
//! parents + a`.
//!
//! If the switches of each group share their parents (rails that meet in the spines), the level is joined. Then the
//! plane of a switch follows from the port of most cables that lead up to it, and the port of a host from its adapter.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::levels::{SubnetLevels, SubnetUplink};
use super::natural::natural_order;
use super::subnet::Subnet;
use super::union::Union;
use crate::error::InputError;

/// The numbered vertices of one level of a site.
pub(super) struct Planes {
    /// The number of planes of the level: the switches of a complete group.
    pub width: usize,
    /// The number of planes above each plane of the level below.
    pub parents: usize,
    /// Whether all planes of the level below lead to the same planes of this level.
    pub below_joined: bool,
    /// The plane number of each vertex of the level.
    pub of: HashMap<usize, usize>,
}

/// The vertices of a site by level, and the cables up from each level.
pub(super) struct SitePart<'a> {
    pub vertices: Vec<Vec<usize>>,
    pub uplinks: Vec<Vec<&'a SubnetUplink>>,
}

/// Returns the planes of every level of a site, from the hosts up.
pub(super) fn number_planes(
    subnet: &Subnet,
    levels: &SubnetLevels,
    site: &SitePart,
) -> Result<Vec<Planes>, InputError> {
    let top = site.vertices.len() - 1;
    let mut classes: Vec<HashMap<usize, usize>> = vec![HashMap::new(); top + 1];
    classes[top] = site.vertices[top].iter().map(|&vertex| (vertex, vertex)).collect();
    let meeting = meeting_level(levels, site);
    for level in (0..top).rev() {
        classes[level] = if meeting == Some(level) {
            classes_by_port(subnet, levels, site, level)?
        } else {
            classes_below(subnet, levels, site, level, &classes[level + 1])?
        };
    }
    let hosts = Planes {
        width: 1,
        parents: 1,
        below_joined: false,
        of: site.vertices[0].iter().map(|&vertex| (vertex, 0)).collect(),
    };
    let mut all = vec![hosts];
    for level in 1..=top {
        let (joined, in_order) = (meeting == Some(level - 1), meeting == Some(level));
        all.push(number(subnet, site, level, &classes[level], &all[level - 1], joined, in_order));
    }
    Ok(all)
}

/// Sorts the vertices of `level` into planes, from those of the level above.
fn classes_below(
    subnet: &Subnet,
    levels: &SubnetLevels,
    site: &SitePart,
    level: usize,
    above: &HashMap<usize, usize>,
) -> Result<HashMap<usize, usize>, InputError> {
    let mut joined = Union::new(subnet.vertices.len());
    let mut first_under = HashMap::new();
    for link in &site.uplinks[level] {
        let (lower, upper) = (link.lower.vertex, link.upper.vertex);
        let first = *first_under.entry(above[&upper]).or_insert(lower);
        joined.join(first, lower);
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &vertex in &site.vertices[level] {
        members.entry(joined.find(vertex)).or_default().push(vertex);
    }
    let mut members_of: HashMap<usize, usize> = HashMap::new();
    for vertex in &site.vertices[level] {
        *members_of.entry(levels.group_of[*vertex]).or_default() += 1;
    }
    let whole = members_of.into_values().max().unwrap_or(1);
    for class in members.values() {
        let mut groups = HashMap::new();
        for &vertex in class {
            if let Some(other) = groups.insert(levels.group_of[vertex], vertex) {
                let (one, two) = (&subnet.vertices[other], &subnet.vertices[vertex]);
                return Err(InputError::at(
                    two.line,
                    format!(
                        "switches {} and {} (line {}) are joined both from below and from above: \
                         not a parallel-port fat tree (a leaf without hosts, or a cable that \
                         leads astray?)",
                        two.name, one.name, one.line
                    ),
                ));
            }
        }
    }
    Ok(merge(levels, site, level, members, whole))
}

/// The lowest level whose switches share their parents, if nodes are on several leaf switches. Without rails, two
/// spines that share a switch above are more likely to be below a leaf whose hosts are all down.
fn meeting_level(levels: &SubnetLevels, site: &SitePart) -> Option<usize> {
    let leaf_groups = site.vertices.get(1)?.iter().map(|&leaf| levels.group_of[leaf]);
    let has_rails = leaf_groups.into_iter().any(|group| levels.groups[1][group].switches.len() > 1);
    has_rails.then(|| (1..site.uplinks.len()).find(|&level| shares_parents(levels, site, level)))?
}

/// Whether the switches of each group of a level share their parents. That is so if some group has several switches and
/// at least three quarters of all pairs of a switch and a switch of the group above are cabled.
fn shares_parents(levels: &SubnetLevels, site: &SitePart, level: usize) -> bool {
    let mut cabled: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut above_of: HashMap<usize, usize> = HashMap::new();
    for link in &site.uplinks[level] {
        let (lower, upper) = (link.lower.vertex, link.upper.vertex);
        cabled.insert((lower, upper));
        above_of.insert(levels.group_of[lower], levels.group_of[upper]);
    }
    let mut several = false;
    let mut pairs = 0;
    let mut seen = BTreeSet::new();
    for vertex in &site.vertices[level] {
        let group = levels.group_of[*vertex];
        let switches = levels.groups[level][group].switches.len();
        let above = above_of.get(&group).map_or(0, |&a| levels.groups[level + 1][a].switches.len());
        if seen.insert(group) {
            several |= switches > 1;
            pairs += switches * above;
        }
    }
    several && 4 * cabled.len() >= 3 * pairs && shares_one(levels, &cabled)
}

/// Whether two switches of one group have a common parent.
fn shares_one(levels: &SubnetLevels, cabled: &BTreeSet<(usize, usize)>) -> bool {
    let mut seen = BTreeSet::new();
    !cabled.iter().all(|&(lower, upper)| seen.insert((levels.group_of[lower], upper)))
}

/// Sorts the vertices of a joined level into planes, by the port of most cables that lead up to each. If ports do not
/// decide, by the names of the switches.
fn classes_by_port(
    subnet: &Subnet,
    levels: &SubnetLevels,
    site: &SitePart,
    level: usize,
) -> Result<HashMap<usize, usize>, InputError> {
    let mut votes: HashMap<usize, BTreeMap<u32, usize>> = HashMap::new();
    for link in &site.uplinks[level - 1] {
        *votes.entry(link.upper.vertex).or_default().entry(link.lower.port).or_default() += 1;
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &vertex in &site.vertices[level] {
        groups.entry(levels.group_of[vertex]).or_default().push(vertex);
    }
    let whole = groups.values().map(Vec::len).max().unwrap_or(1);
    let usual = |vertex: &usize| {
        let votes = votes.get(vertex)?;
        votes.iter().max_by_key(|&(&port, &count)| (count, u32::MAX - port)).map(|(&port, _)| port)
    };
    let of_port: HashMap<usize, u32> =
        site.vertices[level].iter().filter_map(|v| Some((*v, usual(v)?))).collect();
    let ports: BTreeSet<u32> = of_port.values().copied().collect();
    let decides = ports.len() == whole
        && groups.values().all(|group| {
            let distinct: BTreeSet<u32> =
                group.iter().filter_map(|v| of_port.get(v).copied()).collect();
            distinct.len() == group.len()
        });
    if decides {
        let class = |port: u32| ports.range(..port).count();
        return Ok(of_port.into_iter().map(|(vertex, port)| (vertex, class(port))).collect());
    }
    let mut classes = HashMap::new();
    for group in groups.values_mut() {
        if group.len() < whole {
            let vertex = &subnet.vertices[group[0]];
            let message = format!(
                "switch {} and its like are {} where others are {whole}, and neither ports nor adapters tell which rail each \
                 is of",
                vertex.name,
                group.len()
            );
            return Err(InputError::at(vertex.line, message));
        }
        group.sort_by(|&a, &b| natural_order(&subnet.vertices[a].name, &subnet.vertices[b].name));
        classes.extend(group.iter().enumerate().map(|(class, &vertex)| (vertex, class)));
    }
    Ok(classes)
}

/// Merges planes that are only separate because cables are missing, until there are at most `whole`. It merges planes
/// without a common group, starting with those on the same ports of the switches below.
fn merge(
    levels: &SubnetLevels,
    site: &SitePart,
    level: usize,
    members: BTreeMap<usize, Vec<usize>>,
    whole: usize,
) -> HashMap<usize, usize> {
    let ports = match level {
        0 => HashMap::new(),
        _ => first_ports(&site.uplinks[level - 1], |vertex| vertex),
    };
    let mut apart: Vec<(Vec<usize>, BTreeSet<usize>, u32)> = members
        .into_values()
        .map(|class| {
            let groups = class.iter().map(|&vertex| levels.group_of[vertex]).collect();
            let port = class.iter().filter_map(|vertex| ports.get(vertex)).min();
            let port = port.copied().unwrap_or_default();
            (class, groups, port)
        })
        .collect();
    apart.sort_by_key(|(class, _, port)| (usize::MAX - class.len(), *port, class[0]));
    let mut planes: Vec<(Vec<usize>, BTreeSet<usize>, u32)> = Vec::new();
    let mut surplus = apart.len().saturating_sub(whole);
    for (class, groups, port) in apart {
        let fits = |same_port: bool| {
            planes.iter().position(|(_, taken, its_port)| {
                (!same_port || port == *its_port) && taken.is_disjoint(&groups)
            })
        };
        match fits(true).or_else(|| fits(false)).filter(|_| surplus > 0) {
            Some(plane) => {
                surplus -= 1;
                planes[plane].0.extend(class);
                planes[plane].1.extend(groups);
            }
            None => planes.push((class, groups, port)),
        }
    }
    let mut class_of = HashMap::new();
    for (number, (class, _, _)) in planes.into_iter().enumerate() {
        class_of.extend(class.into_iter().map(|vertex| (vertex, number)));
    }
    class_of
}

/// The lowest port below that leads to each vertex, or to each class of vertices.
fn first_ports(uplinks: &[&SubnetUplink], class: impl Fn(usize) -> usize) -> HashMap<usize, u32> {
    let mut first: HashMap<usize, u32> = HashMap::new();
    for link in uplinks {
        let port = first.entry(class(link.upper.vertex)).or_insert(link.lower.port);
        *port = link.lower.port.min(*port);
    }
    first
}

/// Numbers the planes of `level` from those below: by the ports that lead to them, then by the names of their switches.
/// The planes of a level where rails meet keep their order.
fn number(
    subnet: &Subnet,
    site: &SitePart,
    level: usize,
    class_of: &HashMap<usize, usize>,
    below: &Planes,
    below_joined: bool,
    in_order: bool,
) -> Planes {
    let uplinks = &site.uplinks[level - 1];
    let mut ports = first_ports(uplinks, |vertex| class_of[&vertex]);
    if in_order {
        // Most cables decide, so that a single wrong cable does not change the order.
        ports = class_of.values().map(|&class| (class, class as u32)).collect();
    }
    let mut names: HashMap<usize, &str> = HashMap::new();
    for (vertex, class) in class_of {
        let name = subnet.vertices[*vertex].name.as_str();
        let first = names.entry(*class).or_insert(name);
        if natural_order(name, first).is_lt() {
            *first = name;
        }
    }
    // Everything below a class is in one plane, because the planes below were made that way.
    let mut over: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for link in uplinks {
        let plane = if below_joined { 0 } else { below.of[&link.lower.vertex] };
        over.entry(plane).or_default().insert(class_of[&link.upper.vertex]);
    }
    let parents = over.values().map(BTreeSet::len).max().unwrap_or(1);
    let mut number_of = HashMap::new();
    for (plane, classes) in over {
        let mut classes: Vec<usize> = classes.into_iter().collect();
        classes.sort_by(|a, b| {
            ports[a].cmp(&ports[b]).then_with(|| natural_order(names[a], names[b]))
        });
        for (parent, class) in classes.into_iter().enumerate() {
            number_of.insert(class, plane * parents + parent);
        }
    }
    Planes {
        width: if below_joined { parents } else { below.width.saturating_mul(parents) },
        parents,
        below_joined,
        of: class_of.iter().map(|(&vertex, class)| (vertex, number_of[class])).collect(),
    }
}
