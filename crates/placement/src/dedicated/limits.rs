//! The parts of a machine where jobs cannot own links, or only some of them.

use std::fmt::Write;

use topolane_fabric::{Fabric, GroupIndex};

use crate::dedicated::uplink_slots::MOST_UPLINKS;

/// Why jobs cannot own links in a part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// All rails share these switches.
    RailsMeet,
    /// A switch has more uplinks than the engine can track.
    Uplinks,
    /// Only switches above the third level join this part to the rest.
    Levels,
    /// This branch of the tree is shorter than others.
    ShortBranch,
    /// No cable leaves this part.
    CutOff,
    /// Some uplinks of this part are missing.
    Missing,
    /// This part is more oversubscribed than others.
    Taper,
    /// None of these: no combination of nodes and links fits the condition.
    Shape,
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LimitKind::RailsMeet => "uplinks of switches that rails share are not owned",
            LimitKind::Uplinks => "uplinks of a switch with more than 64 are not owned",
            LimitKind::Levels => "links above the third level of switches are not owned",
            LimitKind::ShortBranch => "links of a branch shorter than others are not owned",
            LimitKind::CutOff => "no cable joins all parts",
            LimitKind::Missing => "cables are missing",
            LimitKind::Taper | LimitKind::Shape => "no choice of nodes has links of its own",
        })
    }
}

/// Groups of one level whose links jobs cannot all own.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Why jobs cannot own them.
    pub kind: LimitKind,
    /// The level of the groups.
    pub level: usize,
    /// The groups.
    pub groups: Vec<GroupIndex>,
}

impl Limit {
    /// Whether a job of `nodes` nodes can neither avoid the groups nor lie inside one of them.
    fn stops(&self, fabric: &Fabric, nodes: u32) -> bool {
        let sizes = self.groups.iter().map(|&group| fabric.node_range(self.level, group).len());
        let (all, most) = sizes.fold((0, 0), |(all, most), size| (all + size, most.max(size)));
        let outside = fabric.nodes() as usize - all;
        self.kind != LimitKind::Taper && nodes as usize > outside.max(most)
    }

    /// Explains the limit in one sentence that names the groups.
    pub fn sentence(&self, fabric: &Fabric) -> String {
        let names = names(fabric, self.level, &self.groups);
        let is_one = self.groups.len() == 1;
        let (have, them) = if is_one { ("has", "it") } else { ("have", "one of them") };
        let inside = format!("a job that owns links and has nodes there stays inside {them}");
        let site = self.groups.first().map_or(0, |&group| fabric.site_of_group(self.level, group));
        match self.kind {
            LimitKind::RailsMeet => {
                format!("{names} {have} switches that all rails share: {inside}")
            }
            LimitKind::Uplinks => {
                let cabling = fabric.cabling(site, self.level);
                let uplinks = cabling.parents * cabling.cables;
                format!(
                    "switches of {names} have {uplinks} uplinks, more than {MOST_UPLINKS}: {inside}"
                )
            }
            LimitKind::Levels => {
                format!("{names} {have} switches of more than three levels above: {inside}")
            }
            LimitKind::ShortBranch => {
                let is = if is_one { "is a branch" } else { "are branches" };
                format!("{names} {is} shorter than others: {inside}")
            }
            LimitKind::CutOff => format!("no cable leaves {names}: {inside}"),
            LimitKind::Missing => {
                let sum = |count: fn(&Fabric, usize, GroupIndex) -> usize| -> usize {
                    self.groups.iter().map(|&group| count(fabric, self.level, group)).sum()
                };
                let (missing, all) =
                    (sum(lacking), sum(|fabric, level, group| fabric.uplinks(level, group).len()));
                format!(
                    "{names} {have} {missing} of {all} uplinks missing: jobs own those that are there, and nodes may \
                     lack links"
                )
            }
            LimitKind::Taper => {
                let share =
                    self.groups.first().map_or(0.0, |&group| share(fabric, self.level, group));
                let most = (0..fabric.groups(self.level))
                    .map(|group| self::share(fabric, self.level, group));
                let most = most.fold(0.0, f64::max);
                format!(
                    "full bandwidth is {share:.3} of a node's own for every job, since {names} {have} no more above; \
                     other groups of that level have up to {most:.3}"
                )
            }
            LimitKind::Shape => String::new(),
        }
    }
}

/// Returns everything that prevents jobs from owning links on a machine, the most severe first.
pub fn limits(fabric: &Fabric) -> Vec<Limit> {
    let mut found: Vec<Limit> = Vec::new();
    let mut add = |kind, level, group| match found
        .iter_mut()
        .find(|limit| (limit.kind, limit.level) == (kind, level))
    {
        Some(limit) => limit.groups.push(group),
        None => found.push(Limit { kind, level, groups: vec![group] }),
    };
    for level in (1..fabric.depth()).rev() {
        for group in (0..fabric.groups(level)).filter(|&group| !fabric.is_padding(level, group)) {
            if let Some(kind) = kind_of(fabric, level, group) {
                add(kind, level, group);
            }
        }
    }
    for level in 1..fabric.depth().min(3) {
        let shares: Vec<f64> =
            (0..fabric.groups(level)).map(|group| share(fabric, level, group)).collect();
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let is_uneven = shares.iter().any(|&share| share.is_finite() && share > least * 1.001);
        for (group, &share) in (0..).zip(&shares) {
            if is_uneven && share <= least * 1.001 {
                add(LimitKind::Taper, level, group);
            }
        }
    }
    found
}

/// Why a job of `nodes` nodes gets no links even on the empty machine.
pub(crate) fn limit_for(fabric: &Fabric, limits: &[Limit], nodes: u32) -> LimitKind {
    let stopping = limits.iter().find(|limit| limit.stops(fabric, nodes));
    stopping.map_or(LimitKind::Shape, |limit| limit.kind)
}

fn kind_of(fabric: &Fabric, level: usize, group: GroupIndex) -> Option<LimitKind> {
    let site = fabric.site_of_group(level, group);
    let cabling = fabric.cabling(site, level);
    let (lacking, all) = (lacking(fabric, level, group), fabric.uplinks(level, group).len());
    if all == 0 {
        return None;
    }
    if lacking == all {
        return Some(LimitKind::CutOff);
    }
    if level > 2 {
        return Some(LimitKind::Levels);
    }
    if fabric.rails_at(site, level) < fabric.rails(site) {
        return Some(LimitKind::RailsMeet);
    }
    if cabling.parents * cabling.cables > MOST_UPLINKS {
        return Some(LimitKind::Uplinks);
    }
    if fabric.is_padding(level + 1, fabric.parent(level, group)) {
        return Some(LimitKind::ShortBranch);
    }
    (lacking > 0).then_some(LimitKind::Missing)
}

/// The number of uplinks that the cabling implies and that are missing.
fn lacking(fabric: &Fabric, level: usize, group: GroupIndex) -> usize {
    fabric.uplinks(level, group).len() - fabric.present_uplinks(level, group) as usize
}

/// The bandwidth share that a group gives each of its nodes, as if no cable were missing; infinite if the group has no
/// uplinks.
fn share(fabric: &Fabric, level: usize, group: GroupIndex) -> f64 {
    let uplinks = fabric.uplinks(level, group).len() as f64;
    if uplinks == 0.0 {
        return f64::INFINITY;
    }
    let site = fabric.site_of_group(level, group);
    let bandwidth = |level| fabric.cabling(site, level).bandwidth;
    let nodes = fabric.node_range(level, group).len() as f64;
    let rails = f64::from(fabric.rails(site));
    (uplinks * bandwidth(level) / (nodes * bandwidth(0) * rails)).min(1.0)
}

/// Lists up to three names and says how many more there are.
fn names(fabric: &Fabric, level: usize, groups: &[GroupIndex]) -> String {
    const NAMED: usize = 3;
    let mut text = String::new();
    for (index, &group) in groups.iter().take(NAMED).enumerate() {
        let before = match index {
            0 => "",
            _ if index + 1 == groups.len() => " and ",
            _ => ", ",
        };
        let _ = write!(text, "{before}{}", fabric.group_name(level, group));
    }
    if groups.len() > NAMED {
        let _ = write!(text, " and {} more", groups.len() - NAMED);
    }
    text
}
