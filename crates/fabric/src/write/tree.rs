//! Prints a fabric for people: a header, then its tree with equal siblings on one line.

use std::collections::HashMap;
use std::fmt::Write;

use super::domains::put_domains;
use super::numbers::{short, thousands};
use crate::description::{Detours, HyperXDescription, TorusDescription};
use crate::fabric::Fabric;
use crate::hostlist::compress;
use crate::ids::GroupIndex;
use crate::wiring::{Dragonfly, HyperX, Torus, times};

/// The longest hostlist in a line of the tree.
const LONGEST_LIST: usize = 60;

/// Returns the fabric as text for a screen: nodes and levels, each regular site as PGFT(children; parents; cables),
/// node kinds, cables and taper of each level, and WAN links; then the tree in at most `limit` lines, with equal
/// siblings on one line.
///
/// The taper of a level is the bandwidth up from one of its switches divided by the bandwidth down from it: 1 in a full
/// fat tree, less in an oversubscribed one.
pub fn tree(fabric: &Fabric, limit: usize) -> String {
    let mut text = String::new();
    let depth = fabric.depth();
    let _ = writeln!(
        text,
        "{}: {}, {}, {}",
        fabric.name(),
        count(fabric.nodes(), "node"),
        count(depth as u32, "level"),
        count(fabric.sites(), "site"),
    );
    put_kinds(&mut text, fabric);
    put_domains(&mut text, fabric);
    let shapes = Shapes::of(fabric);
    for site in 0..fabric.sites() {
        put_site(&mut text, fabric, site);
    }
    for (_, (a, b), latency, bandwidth) in fabric.wans() {
        let name = |site| fabric.group_name(depth, site);
        let _ = writeln!(
            text,
            "WAN {} - {}: {} ms, {}",
            name(a),
            name(b),
            short(latency * 1e3),
            speed(bandwidth)
        );
    }
    let mut lines = Vec::new();
    let sites: Vec<GroupIndex> = (0..fabric.sites()).collect();
    put_runs(&mut lines, fabric, &shapes, depth, &sites, 0);
    text.push('\n');
    for line in lines.iter().take(limit) {
        let _ = writeln!(text, "{line}");
    }
    if lines.len() > limit {
        let _ = writeln!(text, "... {} more", count((lines.len() - limit) as u32, "line"));
    }
    text
}

fn count(number: u32, what: &str) -> String {
    let plural = match (number, what.strip_suffix("ch")) {
        (1, _) => "",
        (_, Some(_)) => "es",
        _ => "s",
    };
    format!("{} {what}{plural}", thousands(number))
}

fn speed(bandwidth: f64) -> String {
    format!("{} GB/s", short(bandwidth / 1e9))
}

fn put_kinds(text: &mut String, fabric: &Fabric) {
    let mut of_kind = vec![0; fabric.kinds().len()];
    for node in 0..fabric.nodes() {
        of_kind[fabric.kind_index(node) as usize] += 1;
    }
    for (kind, nodes) in fabric.kinds().iter().zip(of_kind).filter(|(_, nodes)| *nodes > 0) {
        let _ = write!(
            text,
            "{} of {} x {} at {} GHz, {} GiB of memory, {} of {}",
            count(nodes, "node"),
            count(kind.sockets, "socket"),
            count(kind.cores_per_socket, "core"),
            short(kind.core_speed / 1e9),
            short(kind.memory as f64 / f64::from(1 << 30)),
            count(kind.nics, "NIC"),
            speed(kind.nic_bandwidth),
        );
        for (name, count) in kind.resources.iter() {
            let _ = write!(text, ", {count} {name}");
        }
        text.push('\n');
    }
}

fn put_dragonfly(text: &mut String, fabric: &Fabric, dragonfly: &Dragonfly) {
    let bare = dragonfly.switches() - fabric.groups(1);
    let without = if bare > 0 {
        format!(", {} of them without nodes", thousands(bare))
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "dragonfly: {}, {}{without}, {} inside groups and {} between them",
        count(dragonfly.groups(), "group"),
        count(dragonfly.switches(), "switch"),
        count(dragonfly.cables() - dragonfly.cables_between_groups(), "cable"),
        thousands(dragonfly.cables_between_groups()),
    );
    if let Some(Detours { part, share }) = dragonfly.detours() {
        let _ = writeln!(
            text,
            "detours: at most {} of the bytes between groups; jobs with a promise keep {} of each cable between their groups",
            short(part),
            short(share),
        );
    }
}

fn put_torus(text: &mut String, torus: &Torus) {
    let TorusDescription { dimensions, wrap, cube, .. } = torus.description();
    let shape = times(dimensions);
    let (routers, cables) = (count(torus.routers(), "router"), count(torus.cables(), "cable"));
    if !cube.is_empty() {
        let cubes = count(torus.sizes()[0], "cube");
        let cube = times(cube);
        let _ = writeln!(
            text,
            "pod of {cubes} of {cube} joined by optical switches: {shape}, {routers}, {cables} inside cubes"
        );
        return;
    }
    let kind = if wrap.contains(&true) { "torus" } else { "mesh" };
    let _ = write!(text, "{kind}: {shape}, {routers}, {cables}");
    if wrap.contains(&true) && wrap.contains(&false) {
        let open =
            (1..).zip(wrap).filter(|&(_, &wrap)| !wrap).map(|(number, _)| number.to_string());
        let _ = write!(text, ", no wrap in dimension {}", open.collect::<Vec<_>>().join(", "));
    }
    text.push('\n');
}

fn put_hyperx(text: &mut String, hyperx: &HyperX) {
    let HyperXDescription { dimensions, cables, .. } = hyperx.description();
    let each = match &**cables {
        cables if cables.iter().all(|&count| count == 1) => String::new(),
        cables => format!(", {} between two switches", times(cables)),
    };
    let _ = writeln!(
        text,
        "HyperX: {}, {}, {}{each}",
        times(dimensions),
        count(hyperx.switches(), "switch"),
        count(hyperx.cables(), "cable"),
    );
}

fn put_site(text: &mut String, fabric: &Fabric, site: u32) {
    let depth = fabric.depth();
    let nodes = fabric.node_range(depth, site);
    let levels: Vec<usize> = (0..depth).filter(|&level| !uncabled(fabric, site, level)).collect();
    let number =
        |values: Vec<u32>| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    if let Some(dragonfly) = fabric.wiring().dragonfly() {
        put_dragonfly(text, fabric, dragonfly);
        return;
    }
    if let Some(torus) = fabric.wiring().torus() {
        put_torus(text, torus);
        return;
    }
    if let Some(hyperx) = fabric.wiring().hyperx() {
        put_hyperx(text, hyperx);
        return;
    }
    let shape = match regular_children(fabric, site) {
        Some(children) => format!(
            "PGFT({}; {}; {})",
            number(children),
            number(levels.iter().map(|&l| fabric.cabling(site, l).parents).collect()),
            number(levels.iter().map(|&l| fabric.cabling(site, l).cables).collect()),
        ),
        None => "irregular".to_owned(),
    };
    let _ = writeln!(
        text,
        "site {}: {}, {}, {shape}",
        fabric.group_name(depth, site),
        count(nodes.end - nodes.start, "node"),
        count(fabric.site_depth(site) as u32, "level"),
    );
    if fabric.rails(site) > 1 {
        let meeting = (1..depth).find(|&level| fabric.cabling(site, level).joined);
        let whether = match meeting {
            Some(level) => format!("meet at level {}", level + 1),
            None => "do not meet".to_owned(),
        };
        let _ = writeln!(text, "  {} rails, which {whether}", fabric.rails(site));
    }
    let missing = |level: usize| {
        let groups = fabric.level_range(site, level);
        let here = |id: &&u32| {
            let place = fabric.cable_place(**id);
            place.is_some_and(|(at, group, ..)| at == level && groups.contains(&group))
        };
        fabric.missing_cables().iter().filter(here).count() as u32
    };
    for (place, &level) in levels.iter().enumerate() {
        let cabling = fabric.cabling(site, level);
        let cables: u32 =
            fabric.level_range(site, level).map(|g| fabric.uplinks(level, g).len() as u32).sum();
        let _ = write!(text, "  level {place} to {}: {}", place + 1, count(cables, "cable"));
        let _ = write!(text, " of {}", speed(cabling.bandwidth));
        match missing(level) {
            0 => {}
            gone => {
                let _ = write!(text, ", {} missing", thousands(gone));
            }
        }
        if level > 0 {
            let _ = write!(text, ", taper {}", taper(fabric, site, level));
        }
        text.push('\n');
    }
}

/// Whether all groups of a level in a site are without uplinks, that is padding.
fn uncabled(fabric: &Fabric, site: u32, level: usize) -> bool {
    fabric.level_range(site, level).all(|group| fabric.uplinks(level, group).is_empty())
}

/// Bandwidth up divided by bandwidth down of the fullest switch of a level, with two digits.
fn taper(fabric: &Fabric, site: u32, level: usize) -> String {
    let up = fabric.cabling(site, level);
    let up = f64::from(up.parents) * f64::from(up.cables) * up.bandwidth;
    let down = |group: GroupIndex| -> f64 {
        let below = fabric.children(level, group).map(|child| {
            let cabling = fabric.cabling(site, level - 1);
            let cables = fabric.uplinks(level - 1, child).len() as f64;
            cables * cabling.bandwidth
        });
        below.sum::<f64>() / f64::from(fabric.width(site, level))
    };
    let fullest = fabric.level_range(site, level).map(down).fold(0.0, f64::max);
    if fullest > 0.0 { format!("{:.2}", up / fullest) } else { "-".to_owned() }
}

/// A shape number for every group: groups with the same number have equal subtrees.
struct Shapes {
    of: Vec<Vec<usize>>,
}

impl Shapes {
    fn of(fabric: &Fabric) -> Shapes {
        let mut known: HashMap<(usize, bool, Vec<usize>), usize> = HashMap::new();
        let mut of =
            vec![(0..fabric.nodes()).map(|node| fabric.kind_index(node) as usize).collect()];
        for level in 1..=fabric.depth() {
            let below: &Vec<usize> = &of[level - 1];
            let shape = |group| {
                let children = fabric.children(level, group);
                let range = children.start as usize..children.end as usize;
                let shapes = below[range].to_vec();
                let next = known.len();
                *known.entry((level, fabric.is_padding(level, group), shapes)).or_insert(next)
            };
            let shapes = (0..fabric.groups(level)).map(shape).collect();
            of.push(shapes);
        }
        Shapes { of }
    }

    fn shape(&self, level: usize, group: GroupIndex) -> usize {
        self.of[level][group as usize]
    }
}

/// Adds a line for every run of equal groups and, under it, the lines of their children.
fn put_runs(
    lines: &mut Vec<String>,
    fabric: &Fabric,
    shapes: &Shapes,
    level: usize,
    groups: &[GroupIndex],
    indent: usize,
) {
    for run in groups.chunk_by(|&a, &b| shapes.shape(level, a) == shapes.shape(level, b)) {
        let [first, ..] = *run else { continue };
        let children: Vec<GroupIndex> =
            run.iter().flat_map(|&group| fabric.children(level, group)).collect();
        if fabric.is_padding(level, first) {
            put_runs(lines, fabric, shapes, level - 1, &children, indent);
            continue;
        }
        let width = fabric.width(fabric.site_of_group(level, first), level);
        let nodes = fabric.node_range(level, first).len() as u32;
        let each = if run.len() > 1 { " each" } else { "" };
        let mut line = format!(
            "{:indent$}{}: {}{each}",
            "",
            listed(run.iter().map(|&group| fabric.group_name(level, group))),
            count(nodes, "node"),
            indent = 2 * indent
        );
        if width > 1 {
            let _ = write!(line, ", {}{each}", count(width, "switch"));
        }
        if level == 1 {
            let names = children.iter().map(|&node| fabric.node_name(node));
            let _ = write!(line, ", {}", listed(names));
        }
        lines.push(line);
        if level > 1 {
            put_runs(lines, fabric, shapes, level - 1, &children, indent + 1);
        }
    }
}

/// The names as a hostlist, shortened if it is too long for a line.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let list = compress(names);
    if list.chars().count() <= LONGEST_LIST {
        return list;
    }
    let start: String = list.chars().take(LONGEST_LIST - 3).collect();
    start + "..."
}

/// The children per group of each level, from the nodes up, if the site is regular.
fn regular_children(fabric: &Fabric, site: u32) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    for level in 1..=fabric.depth() {
        let mut groups = fabric.level_range(site, level);
        let padding = groups.clone().filter(|&g| fabric.is_padding(level, g)).count();
        if padding == groups.len() {
            continue;
        }
        let below = |group| fabric.children(level, group).len() as u32;
        let first = below(groups.start);
        if padding > 0 || !groups.all(|group| below(group) == first) {
            return None;
        }
        children.push(first);
    }
    Some(children)
}
