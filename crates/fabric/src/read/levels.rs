//! Sorts the switches of a subnet into levels, by distance from the hosts, and into groups.

use std::collections::{HashMap, VecDeque};

use super::subnet::{CableEnd, Subnet};
use super::union::Union;
use crate::check::DEEPEST;
use crate::error::InputError;

/// A cable, with its lower and upper end.
pub(super) struct SubnetUplink {
    pub lower: CableEnd,
    pub upper: CableEnd,
    pub bandwidth: f64,
}

/// One group: its parallel switches (or one host), and the group above.
pub(super) struct Branch {
    pub switches: Vec<usize>,
    pub children: Vec<usize>,
}

/// A subnet sorted by level.
pub(super) struct SubnetLevels {
    /// `groups[level]`: the groups of a level; level 0 has the hosts.
    pub groups: Vec<Vec<Branch>>,
    /// The group of each vertex, at its own level.
    pub group_of: Vec<usize>,
    /// `uplinks[level]`: the cables from `level` to the next.
    pub uplinks: Vec<Vec<SubnetUplink>>,
    /// Level and index of the groups that no other group contains: the sites.
    pub roots: Vec<(usize, usize)>,
}

impl SubnetLevels {
    pub(super) fn of(subnet: &Subnet) -> Result<SubnetLevels, InputError> {
        let level = distances(subnet)?;
        let deepest = level.iter().copied().max().unwrap_or(0);
        let mut uplinks: Vec<Vec<SubnetUplink>> = (0..deepest).map(|_| Vec::new()).collect();
        for cable in &subnet.cables {
            let [a, b] = cable.ends;
            let (lower, upper) = if level[a.vertex] < level[b.vertex] { (a, b) } else { (b, a) };
            let bandwidth = cable.bandwidth;
            uplinks[level[lower.vertex]].push(SubnetUplink { lower, upper, bandwidth });
        }
        let mut by_level = vec![Vec::new(); deepest + 1];
        for (vertex, &level) in level.iter().enumerate() {
            if !subnet.vertices[vertex].skipped {
                by_level[level].push(vertex);
            }
        }
        let mut levels = SubnetLevels {
            groups: Vec::new(),
            group_of: vec![0; level.len()],
            uplinks,
            roots: Vec::new(),
        };
        let mut joined = Union::new(level.len());
        for (level, vertices) in by_level.iter().enumerate() {
            if level > 0 {
                for link in &levels.uplinks[level - 1] {
                    joined.join(link.lower.vertex, link.upper.vertex);
                }
            }
            levels.add_level(level, vertices, &mut joined);
        }
        for group in 0..levels.groups[deepest].len() {
            levels.roots.push((deepest, group));
        }
        Ok(levels)
    }

    /// Adds the groups of one level: sets of its switches that are connected by cables below.
    fn add_level(&mut self, level: usize, vertices: &[usize], joined: &mut Union) {
        let mut branches: Vec<Branch> = Vec::new();
        let mut by_root = HashMap::new();
        for &vertex in vertices {
            let group = *by_root.entry(joined.find(vertex)).or_insert(branches.len());
            if group == branches.len() {
                branches.push(Branch { switches: Vec::new(), children: Vec::new() });
            }
            branches[group].switches.push(vertex);
            self.group_of[vertex] = group;
        }
        if let Some(below) = self.groups.last() {
            for (child, branch) in below.iter().enumerate() {
                match by_root.get(&joined.find(branch.switches[0])) {
                    Some(&group) => branches[group].children.push(child),
                    None => self.roots.push((level - 1, child)),
                }
            }
        }
        self.groups.push(branches);
    }
}

/// The number of links from each vertex to the nearest host.
fn distances(subnet: &Subnet) -> Result<Vec<usize>, InputError> {
    let mut near = vec![Vec::new(); subnet.vertices.len()];
    for cable in &subnet.cables {
        let [a, b] = cable.ends;
        near[a.vertex].push(b.vertex);
        near[b.vertex].push(a.vertex);
    }
    let mut level = vec![usize::MAX; subnet.vertices.len()];
    let mut reached = VecDeque::new();
    for (vertex, known) in subnet.vertices.iter().enumerate() {
        if !known.is_host || known.skipped {
            continue;
        }
        level[vertex] = 0;
        reached.push_back(vertex);
    }
    if reached.is_empty() {
        return Err(InputError::whole("the subnet has no host"));
    }
    while let Some(vertex) = reached.pop_front() {
        for &next in &near[vertex] {
            if level[next] == usize::MAX {
                level[next] = level[vertex] + 1;
                reached.push_back(next);
            }
        }
    }
    for (vertex, level) in subnet.vertices.iter().zip(&mut level) {
        if vertex.skipped {
            *level = 0;
        }
        if *level == usize::MAX {
            let message = format!("no cable leads from switch {} to a host", vertex.name);
            return Err(InputError::at(vertex.line, message));
        }
        if *level > DEEPEST {
            let message = format!("switch {} is more than {DEEPEST} levels up", vertex.name);
            return Err(InputError::at(vertex.line, message));
        }
    }
    for cable in &subnet.cables {
        let [a, b] = cable.ends.map(|end| end.vertex);
        if level[a] == level[b] {
            let (one, other) = (&subnet.vertices[a], &subnet.vertices[b]);
            let message = match level[a] {
                0 => format!("host {} is cabled to host {}, not to a switch", one.name, other.name),
                level => format!(
                    "switch {} is cabled to switch {} (line {}) and both are {level} links above \
                     the nearest host: not a fat tree",
                    one.name, other.name, other.line
                ),
            };
            return Err(InputError::at(one.line, message));
        }
    }
    Ok(level)
}
