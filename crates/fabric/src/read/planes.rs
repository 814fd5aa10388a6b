//! The parallel switches of the groups of a site, numbered so that the cabling is that of a PGFT.
//!
//! In a PGFT, switch `u` of a group is cabled to the switches `u * parents + a` of the group
//! above, for `a` in `0..parents`. So switches of one number in sibling groups share their
//! parents: going down from the top, switches that share a parent of one plane are one plane.
//! Going up from the hosts, the planes above plane `u` take the numbers `u * parents + a`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::levels::{Levels, Union, Uplink};
use super::natural::natural_order;
use super::subnet::Subnet;
use crate::error::InputError;

/// The vertices of one level of a site, numbered.
pub(super) struct Planes {
    /// Planes of the level: switches of a whole group.
    pub width: usize,
    /// Planes over each plane of the level below.
    pub parents: usize,
    /// Number of the plane of each vertex of the level.
    pub of: HashMap<usize, usize>,
}

/// The vertices of a site by level, and the cables up from each.
pub(super) struct SitePart<'a> {
    pub vertices: Vec<Vec<usize>>,
    pub uplinks: Vec<Vec<&'a Uplink>>,
}

/// The planes of every level of a site, from the hosts up.
pub(super) fn number_planes(
    subnet: &Subnet,
    levels: &Levels,
    site: &SitePart,
) -> Result<Vec<Planes>, InputError> {
    let top = site.vertices.len() - 1;
    let mut classes: Vec<HashMap<usize, usize>> = vec![HashMap::new(); top + 1];
    classes[top] = site.vertices[top].iter().map(|&vertex| (vertex, vertex)).collect();
    for level in (0..top).rev() {
        classes[level] = classes_below(subnet, levels, site, level, &classes[level + 1])?;
    }
    let hosts = Planes {
        width: 1,
        parents: 1,
        of: site.vertices[0].iter().map(|&vertex| (vertex, 0)).collect(),
    };
    let mut all = vec![hosts];
    for level in 1..=top {
        let next = number(subnet, site, level, &classes[level], &all[level - 1]);
        all.push(next);
    }
    Ok(all)
}

/// Sorts the vertices of `level` into planes, given those of the level above.
fn classes_below(
    subnet: &Subnet,
    levels: &Levels,
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

/// Joins planes that missing cables keep apart, until there are no more than `whole`: planes
/// without a common group, those on the same ports of the switches below first.
fn merge(
    levels: &Levels,
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
fn first_ports(uplinks: &[&Uplink], class: impl Fn(usize) -> usize) -> HashMap<usize, u32> {
    let mut first: HashMap<usize, u32> = HashMap::new();
    for link in uplinks {
        let port = first.entry(class(link.upper.vertex)).or_insert(link.lower.port);
        *port = link.lower.port.min(*port);
    }
    first
}

/// Numbers the planes of `level` upwards from those below: by the ports that lead to them, then
/// by the names of their switches.
fn number(
    subnet: &Subnet,
    site: &SitePart,
    level: usize,
    class_of: &HashMap<usize, usize>,
    below: &Planes,
) -> Planes {
    let uplinks = &site.uplinks[level - 1];
    let ports = first_ports(uplinks, |vertex| class_of[&vertex]);
    let mut names: HashMap<usize, &str> = HashMap::new();
    for (vertex, class) in class_of {
        let name = subnet.vertices[*vertex].name.as_str();
        let first = names.entry(*class).or_insert(name);
        if natural_order(name, first).is_lt() {
            *first = name;
        }
    }
    // All that lies below a class is of one plane: that is how the planes below were made.
    let mut over: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for link in uplinks {
        over.entry(below.of[&link.lower.vertex]).or_default().insert(class_of[&link.upper.vertex]);
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
        width: below.width.saturating_mul(parents),
        parents,
        of: class_of.iter().map(|(&vertex, class)| (vertex, number_of[class])).collect(),
    }
}
