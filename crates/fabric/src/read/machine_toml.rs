//! Reads Topolane's own machine description, `machine.toml`.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use toml::Spanned;

use super::assemble::{Below, DescribedSwitch, RootedTree, assemble, at_line, nodes_mut};
use super::networks::{self, NetworkTable};
use super::per_level::PerLevel;
use super::toml_lines::TomlLines;
use super::{Read, dragonfly, hyperx, torus};
use crate::check::{
    DEEPEST, MOST_SWITCHES, check_kind, check_wan, most_cables, positive, too_many_cables,
    too_many_switches,
};
use crate::description::{
    Cabling, Children, Description, DomainDescription, Group, MissingCable, NodeDescription,
    SiteDescription, WanDescription, WiringDescription,
};
use crate::error::{InputError, shown};
use crate::fabric::check_sizes;
use crate::hostlist::{MOST_LETTERS, MOST_NAMES, expand};
use crate::node_kind::{NodeKind, Penalty};
use crate::presets::{NVLINK, QDR, regular_group};
use crate::resources::{ResourceCounts, Resources};

/// The longest text that is parsed, because parsed values take several times the memory of the text.
const LONGEST_TEXT: usize = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MachineTable {
    name: Spanned<String>,
    block_sizes: Option<Spanned<Vec<u32>>>,
    node: Option<Spanned<NodeKind>>,
    #[serde(default)]
    node_kind: Vec<Spanned<OtherKind>>,
    site: Vec<Spanned<Site>>,
    #[serde(default)]
    wan: Vec<Spanned<Wan>>,
    #[serde(default)]
    domain: Vec<Domain>,
    #[serde(default)]
    network: Vec<NetworkTable>,
    dragonfly: Option<Spanned<dragonfly::DragonflyTable>>,
    torus: Option<Spanned<torus::TorusTable>>,
    hyperx: Option<Spanned<hyperx::HyperXTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct OtherKind {
    nodes: Spanned<String>,
    sockets: Option<u32>,
    cores_per_socket: Option<u32>,
    core_speed: Option<f64>,
    memory: Option<u64>,
    nics: Option<u32>,
    nic_bandwidth: Option<f64>,
    flow_bandwidth: Option<f64>,
    latency: Option<f64>,
    penalty: Option<Penalty>,
    copy_bandwidth: Option<f64>,
    copy_latency: Option<f64>,
    memory_bandwidth: Option<f64>,
    resources: Option<ResourceCounts>,
}

impl OtherKind {
    /// The kind; missing values are taken from `default`.
    fn over(self, default: &NodeKind) -> NodeKind {
        NodeKind {
            sockets: self.sockets.unwrap_or(default.sockets),
            cores_per_socket: self.cores_per_socket.unwrap_or(default.cores_per_socket),
            core_speed: self.core_speed.unwrap_or(default.core_speed),
            memory: self.memory.unwrap_or(default.memory),
            nics: self.nics.unwrap_or(default.nics),
            nic_bandwidth: self.nic_bandwidth.unwrap_or(default.nic_bandwidth),
            flow_bandwidth: self.flow_bandwidth.or(default.flow_bandwidth),
            latency: self.latency.unwrap_or(default.latency),
            penalty: self.penalty.unwrap_or(default.penalty),
            copy_bandwidth: self.copy_bandwidth.unwrap_or(default.copy_bandwidth),
            copy_latency: self.copy_latency.unwrap_or(default.copy_latency),
            memory_bandwidth: self.memory_bandwidth.unwrap_or(default.memory_bandwidth),
            resources: self.resources.unwrap_or_else(|| default.resources.clone()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Site {
    name: Spanned<String>,
    children: Option<Spanned<Vec<u32>>>,
    nodes: Option<Spanned<String>>,
    parents: Option<Spanned<Vec<u32>>>,
    cables: Option<Spanned<Vec<u32>>>,
    bandwidth: Option<Spanned<PerLevel>>,
    joined: Option<Spanned<Vec<bool>>>,
    #[serde(default)]
    missing: Vec<Spanned<[u32; 5]>>,
    #[serde(default)]
    switch: Vec<Spanned<SwitchTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SwitchTable {
    name: Spanned<String>,
    nodes: Option<String>,
    switches: Option<String>,
    #[serde(default)]
    switch_names: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Wan {
    between: (String, String),
    latency: f64,
    bandwidth: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Domain {
    name: Spanned<String>,
    nodes: Spanned<String>,
    #[serde(default = "nvlink")]
    bandwidth: f64,
}

fn nvlink() -> f64 {
    NVLINK
}

/// Reads a machine in Topolane's own format.
///
/// A site is either regular, PGFT(children; parents; cables) from the nodes up, or has switches that name their
/// children. The switch that no other names is the root; its group has the site's name. A node with several parents at
/// the first level has one adapter on each: these are rails, and they meet at a level that `joined` marks. Defaults:
/// parents and cables are 1; bandwidth (of one cable, in B/s; one number, or one per level) is 4e9; nodes of a regular
/// site are named after the machine, with a number; `[node]` is the default [`NodeKind`].
///
/// A table `[dragonfly]`, `[torus]` or `[hyperx]` has the cables between switches of a site that is no tree
/// (docs/reference/machines.md).
///
/// ```
/// let machine = topolane_fabric::read::machine_toml(r#"
///     name = "toy"
///     block-sizes = [18, 36]          # BlockSizes of Slurm's topology/block, in nodes
///     [node]
///     sockets = 2
///     cores-per-socket = 18
///     [[node-kind]]                   # other kinds: what is absent is as in [node]
///     nodes = "toy[1-4]"
///     memory = 137438953472
///     resources = { gpu = 8, "gpu:h100" = 8, nic = 8 }    # what else jobs take of a node
///     [[site]]
///     name = "core"
///     children = [18, 18, 4]
///     parents = [1, 18, 2]
///     cables = [1, 1, 9]
///     joined = [false, false, false]  # whether the parallel switches of a group share their parents
///     missing = [[1, 0, 0, 5, 0]]     # level, group, switch, parent, cable, from 0
///     [[site]]
///     name = "east"
///     [[site.switch]]
///     name = "leaf0"
///     nodes = "e[1-16]"
///     [[site.switch]]
///     name = "top"
///     switches = "leaf0"
///     switch-names = ["spine"]        # names of the group's parallel switches, if any
///     [[wan]]
///     between = ["core", "east"]
///     latency = 0.005
///     bandwidth = 1.25e8
///     [[domain]]                      # nodes that a faster network joins, such as NVLink
///     name = "rack0"
///     nodes = "toy[1-18]"
///     bandwidth = 3.6e12              # of a node in each direction, bytes per second
///     [[network]]                     # another network over the same nodes: [`read`](super::read()) gives it
///     name = "storage"
///     file = "storage.ibnetdiscover"
///     servers = "oss[1-4]"            # what all jobs exchange data with on it
/// "#)?;
/// assert_eq!(topolane_fabric::Fabric::build(&machine)?.nodes(), 1296 + 16);
/// # Ok::<(), topolane_fabric::InputError>(())
/// ```
///
/// # Errors
/// With its line: invalid TOML; an unknown key; a value of the wrong type or length; a node name that occurs twice or
/// too often; a name with a control character or of more than 255 letters; a domain without nodes or with a node that
/// is in another domain; more nodes, switches or names than a machine may have; for explicit switches, whatever
/// [`slurm_topology`](super::slurm_topology()) refuses, and several roots. Faults of the machine as a whole are left to
/// [`Fabric::build`](crate::Fabric::build).
pub fn machine_toml(text: &str) -> Result<Description, InputError> {
    whole(text).map(|read| read.description)
}

/// Reads the machine and its other networks.
pub(super) fn whole(text: &str) -> Result<Read, InputError> {
    if text.len() > LONGEST_TEXT {
        let message = format!("{} bytes of TOML are more than {LONGEST_TEXT}", text.len());
        return Err(InputError::whole(message));
    }
    let lines = &TomlLines::of(text);
    let machine: MachineTable = toml::from_str(text).map_err(|error| {
        let message = error.message().replace('\n', ", ");
        InputError::at(error.span().map_or(0, |span| lines.at(span.start)), message)
    })?;
    let mut description = Description {
        name: lines.name(machine.name)?,
        sites: Vec::new(),
        wans: Vec::new(),
        kinds: Vec::new(),
        domains: Vec::new(),
        ..Description::default()
    };
    let mut resources = Resources::default();
    let (place, kind) =
        machine.node.map_or_else(Default::default, |node| (node.span().start, node.into_inner()));
    check_read_kind(text, lines, place, &kind, &mut resources)?;
    description.kinds.push(kind);
    let mut nodes = NodeCount::default();
    let mut line_of: HashMap<String, usize> = HashMap::new();
    let widest = machine.site.iter().filter_map(|site| site.get_ref().to_nodes());
    let widest = widest.fold(0.0, f64::max);
    for site in machine.site {
        let reader = SiteTableReader { lines, line: lines.at(site.span().start) };
        let site = reader.read(site.into_inner(), &description.name, &mut nodes)?;
        if let Some(first) = line_of.insert(site.root.name.clone(), reader.line) {
            return Err(reader.refuse(format!(
                "site {} stands on line {first} already",
                shown(&site.root.name)
            )));
        }
        description.sites.push(site);
    }
    for wan in machine.wan {
        let line = lines.at(wan.span().start);
        let Wan { between, latency, bandwidth } = wan.into_inner();
        let wan = WanDescription { between, latency, bandwidth };
        check_wan(&wan).map_err(|error| at_line(error, line))?;
        let ends = [&wan.between.0, &wan.between.1];
        if let Some(name) = ends.into_iter().find(|&name| !line_of.contains_key(name)) {
            let message = format!("a WAN link names site {}, which is not there", shown(name));
            return Err(InputError::at(line, message));
        }
        description.wans.push(wan);
    }
    set_kinds(text, lines, machine.node_kind, &mut resources, &mut description)?;
    set_domains(lines, machine.domain, &mut description)?;
    if let Some(sizes) = machine.block_sizes {
        let line = lines.at(sizes.span().start);
        let sizes = sizes.into_inner();
        check_sizes(&sizes).map_err(|message| InputError::at(line, message))?;
        if description.domains.is_empty() {
            return Err(InputError::at(line, "block-sizes are given, but there is no [[domain]]"));
        }
        description.block_sizes = sizes;
    }
    if let Some(table) = machine.dragonfly {
        description.wiring = WiringDescription::Dragonfly(dragonfly::wiring(lines, table)?);
    }
    if let Some(table) = machine.torus {
        if !description.wiring.is_tree() {
            let line = lines.at(table.span().start);
            return Err(InputError::at(line, "a machine is a dragonfly or a torus, not both"));
        }
        description.wiring = WiringDescription::Torus(torus::wiring(lines, table)?);
    }
    if let Some(table) = machine.hyperx {
        if !description.wiring.is_tree() {
            let line = lines.at(table.span().start);
            let words = "a machine is a dragonfly, a torus or a HyperX, not two of them";
            return Err(InputError::at(line, words));
        }
        description.wiring = WiringDescription::HyperX(hyperx::wiring(lines, table)?);
    }
    let networks = networks::entries(lines, machine.network)?;
    let adapters = description.kinds[0].nic_bandwidth;
    let notes = if widest > adapters && !text.contains("nic-bandwidth") {
        vec![format!(
            "no nic-bandwidth in [node]: adapters of {} GB/s are assumed, though a cable to a node has {} GB/s",
            adapters / 1e9,
            widest / 1e9
        )]
    } else {
        Vec::new()
    };
    Ok(Read { networks, ..Read::with_notes(description, notes) })
}

impl Site {
    /// The bandwidth of the cables to nodes, if given.
    fn to_nodes(&self) -> Option<f64> {
        match self.bandwidth.as_ref()?.get_ref() {
            PerLevel::All(one) => Some(*one),
            PerLevel::Each(list) => list.first().copied(),
        }
    }
}

fn set_domains(
    lines: &TomlLines,
    domains: Vec<Domain>,
    description: &mut Description,
) -> Result<(), InputError> {
    let mut left: HashSet<&str> = HashSet::new();
    let all: Vec<String> =
        nodes_mut(description).into_iter().map(|node| node.name.clone()).collect();
    left.extend(all.iter().map(String::as_str));
    let mut line_of: HashMap<String, usize> = HashMap::new();
    let mut named: HashMap<String, usize> = HashMap::new();
    for domain in domains {
        let line = lines.at(domain.name.span().start);
        let name = lines.name(domain.name)?;
        let refuse = |line: usize, what: String| {
            Err(InputError::at(line, format!("domain {} {what}", shown(&name))))
        };
        if let Some(first) = named.insert(name.clone(), line) {
            return refuse(line, format!("stands on line {first} already"));
        }
        if domain.bandwidth.is_nan() || domain.bandwidth <= 0.0 || domain.bandwidth.is_infinite() {
            let bandwidth = domain.bandwidth;
            return refuse(line, format!("needs a bandwidth above 0, not {bandwidth} B/s"));
        }
        let line = lines.at(domain.nodes.span().start);
        let nodes = expand(domain.nodes.get_ref()).map_err(|error| at_line(error, line))?;
        if nodes.is_empty() {
            return refuse(line, "has no nodes".to_owned());
        }
        for node in &nodes {
            if let Some(first) = line_of.insert(node.clone(), line) {
                let first = format!("which is in a domain of line {first} already");
                return refuse(line, format!("names node {}, {first}", shown(node)));
            }
            if !left.contains(node.as_str()) {
                return refuse(line, format!("names node {}, which is not there", shown(node)));
            }
        }
        let bandwidth = domain.bandwidth;
        description.domains.push(DomainDescription { name, nodes, bandwidth });
    }
    Ok(())
}

/// The number of nodes in the sites so far, and the total length of their names.
#[derive(Default)]
struct NodeCount {
    nodes: usize,
    letters: usize,
}

impl NodeCount {
    fn add(&mut self, nodes: usize, letters: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.letters = self.letters.saturating_add(letters);
        if self.nodes > MOST_NAMES {
            return Err(format!("the machine has more than {MOST_NAMES} nodes"));
        }
        if self.letters > MOST_LETTERS {
            return Err(format!("the names of all nodes have more than {MOST_LETTERS} letters"));
        }
        Ok(())
    }
}

/// Refuses an invalid node kind, on the line of the wrong key. The table of the kind starts at `place`.
fn check_read_kind(
    text: &str,
    lines: &TomlLines,
    place: usize,
    kind: &NodeKind,
    resources: &mut Resources,
) -> Result<(), InputError> {
    let mut counted = || {
        let mut names = kind.resources.iter().map(|(name, _)| name);
        names
            .try_for_each(|name| resources.add(name).map(drop))
            .map_err(|message| ("resources", message))
    };
    check_kind(kind).and_then(|()| counted()).map_err(|(key, message)| {
        let table = text.get(place..).unwrap_or("");
        let mut at = place;
        for (index, line) in table.split_inclusive('\n').enumerate() {
            if index > 0 && line.trim_start().starts_with('[') {
                break;
            }
            let rest = line.trim_start().strip_prefix(key);
            if rest.is_some_and(|rest| rest.trim_start().starts_with(['=', '.'])) {
                return InputError::at(lines.at(at), message);
            }
            at += line.len();
        }
        InputError::at(lines.at(place), message)
    })
}

fn set_kinds(
    text: &str,
    lines: &TomlLines,
    kinds: Vec<Spanned<OtherKind>>,
    resources: &mut Resources,
    description: &mut Description,
) -> Result<(), InputError> {
    let mut kind_of = HashMap::new();
    for kind in kinds {
        let place = kind.span().start;
        let kind = kind.into_inner();
        let index = description.kinds.len() as u32;
        let line = lines.at(kind.nodes.span().start);
        let names = expand(kind.nodes.get_ref()).map_err(|error| at_line(error, line))?;
        if kind_of.len() + names.len() > MOST_NAMES {
            return Err(InputError::at(
                line,
                format!("node kinds of more than {MOST_NAMES} nodes"),
            ));
        }
        for name in names {
            if let Some((_, first)) = kind_of.insert(name.clone(), (index, line)) {
                let message = format!("node {name} is of the kind of line {first} already");
                return Err(InputError::at(line, message));
            }
        }
        let kind = kind.over(&description.kinds[0]);
        check_read_kind(text, lines, place, &kind, resources)?;
        description.kinds.push(kind);
    }
    for node in nodes_mut(description) {
        if let Some((kind, _)) = kind_of.remove(&node.name) {
            node.kind = kind;
        }
    }
    match kind_of.into_iter().min_by(|(a, x), (b, y)| (x, a).cmp(&(y, b))) {
        Some((name, (_, line))) => {
            Err(InputError::at(line, format!("there is no node {name} to be of this kind")))
        }
        None => Ok(()),
    }
}

/// Reads the site whose table starts on `line`.
struct SiteTableReader<'a> {
    lines: &'a TomlLines,
    line: usize,
}

impl SiteTableReader<'_> {
    fn read(
        &self,
        site: Site,
        machine: &str,
        nodes: &mut NodeCount,
    ) -> Result<SiteDescription, InputError> {
        let name = self.lines.name(site.name)?;
        let (root, depth) = match (&site.children, site.switch.is_empty()) {
            (Some(children), true) => {
                let names = self.node_names(children, site.nodes.as_ref(), machine, nodes)?;
                let children = children.get_ref();
                (regular(&name, children, names), children.len())
            }
            (None, false) if site.nodes.is_none() => {
                let RootedTree { mut root, depth, .. } = self.explicit(site.switch)?;
                root.name.clone_from(&name);
                let (count, letters) = count_nodes(&root);
                nodes.add(count, letters).map_err(|message| self.refuse(message))?;
                (root, depth)
            }
            _ => {
                return Err(self.refuse(format!(
                    "site {name} needs either children (and perhaps nodes) or [[site.switch]] tables"
                )));
            }
        };
        let parents = self.per_level(site.parents.as_ref(), "parents", depth)?;
        let cables = self.per_level(site.cables.as_ref(), "cables", depth)?;
        let bandwidth_line =
            site.bandwidth.as_ref().map_or(self.line, |value| self.lines.at(value.span().start));
        let bandwidth = match site.bandwidth {
            None => vec![QDR; depth],
            Some(value) => match value.get_ref() {
                PerLevel::All(one) => vec![*one; depth],
                PerLevel::Each(list) => {
                    self.check_length("bandwidth", list.len(), depth, value.span().start)?;
                    list.clone()
                }
            },
        };
        if let Some(index) = bandwidth.iter().position(|&value| !positive(value)) {
            let value = bandwidth[index];
            let message = format!(
                "bandwidth of level {} of site {} must be above 0, not {value} B/s",
                index + 1,
                shown(&name)
            );
            return Err(InputError::at(bandwidth_line, message));
        }
        let joined = match site.joined {
            None => vec![false; depth],
            Some(list) => {
                let place = list.span().start;
                self.check_length("joined", list.get_ref().len(), depth, place)?;
                if list.get_ref()[0] {
                    let message = "only switches can be joined, not nodes: the first value of joined must be false";
                    return Err(InputError::at(self.lines.at(place), message));
                }
                list.into_inner()
            }
        };
        let lines_of = [&site.parents, &site.cables];
        let lines_of = lines_of
            .map(|list| list.as_ref().map_or(self.line, |list| self.lines.at(list.span().start)));
        let cabling: Vec<Cabling> = (0..depth)
            .map(|level| Cabling {
                joined: joined[level],
                ..Cabling::new(parents[level], cables[level], bandwidth[level])
            })
            .collect();
        let children = site.children.as_ref().map(|children| &**children.get_ref());
        let widths = widths(&name, &cabling, children, lines_of)?;
        let missing = site.missing.into_iter().map(|place| {
            let line = self.lines.at(place.span().start);
            let [level, group, switch, parent, cable] = place.into_inner();
            let has = cabling.get(level as usize).is_some_and(|cabling| {
                let (groups, width) = widths[level as usize];
                let is_there = groups.is_none_or(|groups| u64::from(group) < groups);
                is_there
                    && u64::from(switch) < width
                    && parent < cabling.parents
                    && cable < cabling.cables
            });
            if has {
                return Ok(MissingCable { level: level as usize, group, switch, parent, cable });
            }
            let place = format!(
                "level {level}, group {group}, switch {switch}, parent {parent}, cable {cable}"
            );
            let message =
                format!("missing cable ({place}) names a place that {name} does not have");
            Err(InputError::at(line, message))
        });
        let missing = missing.collect::<Result<_, _>>()?;
        Ok(SiteDescription { root, cabling, missing })
    }

    fn refuse(&self, message: String) -> InputError {
        InputError::at(self.line, message)
    }

    fn check_length(
        &self,
        key: &str,
        length: usize,
        depth: usize,
        place: usize,
    ) -> Result<(), InputError> {
        if length == depth {
            return Ok(());
        }
        let message = format!("{key} has {length} numbers, but the site has {depth} levels");
        Err(InputError::at(self.lines.at(place), message))
    }

    fn per_level(
        &self,
        list: Option<&Spanned<Vec<u32>>>,
        key: &str,
        depth: usize,
    ) -> Result<Vec<u32>, InputError> {
        let Some(list) = list else { return Ok(vec![1; depth]) };
        self.check_length(key, list.get_ref().len(), depth, list.span().start)?;
        if list.get_ref().contains(&0) {
            let line = self.lines.at(list.span().start);
            return Err(InputError::at(line, format!("{key} must be at least 1 at every level")));
        }
        Ok(list.get_ref().clone())
    }

    /// The node names of a regular site, one for each node of its tree.
    fn node_names(
        &self,
        children: &Spanned<Vec<u32>>,
        nodes: Option<&Spanned<String>>,
        machine: &str,
        counted: &mut NodeCount,
    ) -> Result<Vec<String>, InputError> {
        let levels = children.get_ref();
        let line = self.lines.at(children.span().start);
        if levels.is_empty() || levels.len() > DEEPEST {
            return Err(InputError::at(line, format!("children needs 1 to {DEEPEST} levels")));
        }
        let count = levels.iter().fold(1, |all: usize, &each| all.saturating_mul(each as usize));
        let before = counted.nodes;
        if count == 0 || count > MOST_NAMES - before.min(MOST_NAMES) {
            let message = format!("children {levels:?} make {count} nodes: not 1 to {MOST_NAMES}");
            return Err(InputError::at(line, message));
        }
        // The number of groups at each level. No factor is 0, and the product fits.
        let above = levels.iter().scan(count, |left, &each| {
            *left /= each as usize;
            Some(*left)
        });
        if above.sum::<usize>() as u64 > MOST_SWITCHES {
            return Err(at_line(too_many_switches(machine), line));
        }
        let Some(nodes) = nodes else {
            let digits = 7;
            counted
                .add(count, count.saturating_mul(machine.len() + digits))
                .map_err(|message| InputError::at(line, message))?;
            return Ok((before + 1..=before + count).map(|i| format!("{machine}{i}")).collect());
        };
        let line = self.lines.at(nodes.span().start);
        let names = expand(nodes.get_ref()).map_err(|error| at_line(error, line))?;
        if names.len() != count {
            return Err(InputError::at(
                line,
                format!("nodes names {} nodes, but children make {count}", names.len()),
            ));
        }
        let mut seen = HashSet::with_capacity(count);
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(InputError::at(line, format!("nodes names {} twice", shown(twice))));
        }
        counted
            .add(count, names.iter().map(String::len).sum())
            .map_err(|message| InputError::at(line, message))?;
        Ok(names)
    }

    fn explicit(&self, tables: Vec<Spanned<SwitchTable>>) -> Result<RootedTree, InputError> {
        let mut switches = Vec::with_capacity(tables.len());
        for table in tables {
            let line = self.lines.at(table.span().start);
            let table = table.into_inner();
            let name = self.lines.name(table.name)?;
            let below = match (table.nodes, table.switches) {
                (Some(nodes), None) => Below::Nodes(nodes),
                (None, Some(switches)) => Below::Switches(switches),
                _ => {
                    let message = format!("switch {name} needs nodes or switches, one of them");
                    return Err(InputError::at(line, message));
                }
            };
            let parallel = table.switch_names.into_iter().map(|name| self.lines.name(name));
            let parallel = parallel.collect::<Result<Vec<_>, _>>()?;
            switches.push(DescribedSwitch { name, switches: parallel, below, place: line.into() });
        }
        let mut trees = assemble(switches)?.into_iter();
        match (trees.next(), trees.next()) {
            (Some(tree), None) => Ok(tree),
            (Some(first), Some(second)) => Err(second.place.refuse(format!(
                "switch {} is a second root; the first is {} of {}: nothing names either as a child",
                second.root.name, first.root.name, first.place
            ))),
            _ => Err(self.refuse("the site has no root switch".to_owned())),
        }
    }
}

/// For each level, the number of groups, if the site is regular, and the number of parallel switches per group. Too
/// many switches are refused on the line of `parents`, too many cables on that of `cables`.
fn widths(
    site: &str,
    cabling: &[Cabling],
    children: Option<&[u32]>,
    [parents, cables]: [usize; 2],
) -> Result<Vec<(Option<u64>, u64)>, InputError> {
    let groups_of = |level: usize| {
        let above = children?.get(level..)?;
        Some(above.iter().map(|&each| u64::from(each)).product::<u64>())
    };
    let nodes = groups_of(0).map(|nodes| nodes as u32);
    let (mut width, mut switches, mut all) = (1u32, 0u64, 0u64);
    let mut widths = Vec::with_capacity(cabling.len());
    for (level, own) in cabling.iter().enumerate() {
        let groups = groups_of(level);
        widths.push((groups, u64::from(width)));
        let from = u64::from(width).saturating_mul(u64::from(own.parents));
        let from = from.saturating_mul(u64::from(own.cables));
        all = all.saturating_add(from.saturating_mul(groups.unwrap_or(1)));
        width = own.width_above(width).unwrap_or(u32::MAX);
        let above = groups_of(level + 1).unwrap_or(1);
        switches = switches.saturating_add(u64::from(width).saturating_mul(above));
        if switches > MOST_SWITCHES {
            return Err(at_line(too_many_switches(site), parents));
        }
    }
    match nodes {
        Some(nodes) if all > most_cables(nodes) => {
            Err(at_line(too_many_cables(site, nodes), cables))
        }
        _ => Ok(widths),
    }
}

/// The number of nodes below a group, and the total length of their names.
fn count_nodes(group: &Group) -> (usize, usize) {
    match &group.children {
        Children::Nodes(nodes) => (nodes.len(), nodes.iter().map(|node| node.name.len()).sum()),
        Children::Groups(groups) => {
            groups.iter().map(count_nodes).fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
        }
    }
}

fn regular(name: &str, children: &[u32], nodes: Vec<String>) -> Group {
    let mut nodes = nodes.into_iter().map(|name| NodeDescription { name, kind: 0 });
    let mut next = vec![0; children.len() + 1];
    regular_group(name, children, children.len(), &mut next, &mut nodes)
}
