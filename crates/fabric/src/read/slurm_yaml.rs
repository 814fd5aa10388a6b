//! Reads Slurm's `topology.yaml`, which may have several topologies.

use std::collections::{HashMap, HashSet};

use super::assemble::{Below, DescribedSwitch};
use super::blocks::{DescribedBlock, DescribedSizes, blocks, leaf, site};
use super::slurm_lines::LinePosition;
use super::slurm_topology::no_hostlist;
use super::slurm_tree::of_switches;
use super::yaml::{Value, documents};
use super::{MachineOptions, Read, UNNAMED};
use crate::description::{Children, Description, Group};
use crate::error::{InputError, shown};
use crate::hostlist::expand;
use crate::node_kind::NodeKind;

/// One topology of the file.
struct Topology<'a> {
    name: &'a str,
    is_default: bool,
    kind: &'a str,
    value: &'a Value,
    line: usize,
}

/// The keys that give the type of a topology.
const TYPES: [&str; 5] = ["tree", "block", "flat", "ring", "torus3d"];

/// Reads a `topology.yaml`: the topology that `options` name, otherwise all of them as one machine.
///
/// Topologies of the same machine describe it from several sides. The trees come first, that with `cluster_default: true`
/// before the others, and the blocks after them. A topology of other nodes adds its sites. Blocks of nodes that are known
/// already become their domains. Any other topology is skipped with a note, and so are ring and torus: they add nothing
/// to a tree, or contradict it.
///
/// A topology is a `tree` of switches, a list of `block`s, or `flat`. Each block is a domain. A block topology does not
/// describe switches, so its blocks become leaves under one root. A flat topology names no nodes: it has all nodes of
/// the file's other topologies, on one switch. Cables, bandwidths and node kinds are assumed as in
/// [`slurm_topology`](super::slurm_topology()).
///
/// # Errors
/// With its line: invalid YAML or another form; two topologies with one name; two defaults; a topology without a type,
/// with several types, or a ring or torus; a name that no topology has; and whatever the readers of `topology.conf`
/// refuse about switches and blocks.
pub fn slurm_yaml(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let documents = documents(text, &[])?;
    let mut topologies = Vec::new();
    for document in &documents {
        for value in document.list("topology.yaml")? {
            topologies.push(Topology::of(value)?);
        }
    }
    let mut lines = HashMap::new();
    for topology in &topologies {
        if let Some(first) = lines.insert(topology.name, topology.line) {
            return Err(topology.refuse(format!("stands on line {first} already")));
        }
    }
    let mut defaults = topologies.iter().filter(|topology| topology.is_default);
    if let (Some(first), Some(second)) = (defaults.next(), defaults.next()) {
        let what = format!("is a second default: {} of line {}", shown(first.name), first.line);
        return Err(second.refuse(format!("{what} has cluster_default: true already")));
    }
    let chosen = choose(&topologies, options)?;
    if options.topology.is_some() || topologies.len() == 1 {
        return one(chosen, &topologies, options);
    }
    let mut order: Vec<&Topology> =
        topologies.iter().filter(|topology| ["tree", "block"].contains(&topology.kind)).collect();
    order.sort_by_key(|topology| (topology.kind == "block", !topology.is_default));
    if order.is_empty() {
        return one(chosen, &topologies, options);
    }
    together(&order, &topologies, options)
}

fn one(
    topology: &Topology,
    all: &[Topology],
    options: &MachineOptions,
) -> Result<Read, InputError> {
    match topology.kind {
        "tree" => tree(topology, options),
        "block" => block(topology),
        "flat" => flat(topology, all),
        kind => Err(topology.refuse(format!("is a {kind}; only tree, block and flat are read"))),
    }
}

/// Returns the machine that these topologies of a file describe together.
fn together(
    order: &[&Topology],
    all: &[Topology],
    options: &MachineOptions,
) -> Result<Read, InputError> {
    let mut whole = Read::with_notes(Description::default(), Vec::new());
    let mut owner: HashMap<String, &str> = HashMap::new();
    let (mut used, mut skipped) = (Vec::new(), Vec::new());
    for topology in order {
        let mut read = one(topology, all, options)?;
        let nodes = node_names(&read.description);
        let known = nodes.iter().find_map(|node| owner.get_key_value(node));
        let is_inside = nodes.iter().all(|node| owner.contains_key(node));
        let description = &mut whole.description;
        if let Some((node, &first)) = known {
            if topology.kind != "block" || !is_inside || !description.domains.is_empty() {
                skipped.push(format!(
                    "topology {} is not read: node {} is in topology {} too",
                    shown(topology.name),
                    shown(node),
                    shown(first)
                ));
                continue;
            }
        } else {
            let names: HashSet<String> =
                description.sites.iter().map(|site| site.root.name.clone()).collect();
            for mut site in read.description.sites {
                if names.contains(&site.root.name) {
                    topology.name.clone_into(&mut site.root.name);
                }
                description.sites.push(site);
            }
            owner.extend(nodes.into_iter().map(|node| (node, topology.name)));
        }
        if description.kinds.is_empty() {
            description.name = read.description.name;
            description.kinds = read.description.kinds;
        }
        description.domains.append(&mut read.description.domains);
        if description.block_sizes.is_empty() {
            description.block_sizes = read.description.block_sizes;
        }
        whole.notes.append(&mut read.notes);
        used.push(topology.name);
    }
    let others =
        all.iter().filter(|topology| !order.iter().any(|other| other.name == topology.name));
    skipped.extend(others.map(|topology| {
        format!("topology {} is not read: it is {}", shown(topology.name), topology.kind)
    }));
    let first = match used[..] {
        [only] => format!("topology {} is read, of {}", shown(only), all.len()),
        _ => format!("topologies {} are read as one machine", used.join(" and ")),
    };
    whole.notes.splice(0..0, [vec![format!("{first}: --topology chooses one")], skipped].concat());
    Ok(whole)
}

fn node_names(description: &Description) -> Vec<String> {
    let mut names = Vec::new();
    let mut groups: Vec<&Group> = description.sites.iter().rev().map(|site| &site.root).collect();
    while let Some(group) = groups.pop() {
        match &group.children {
            Children::Nodes(nodes) => names.extend(nodes.iter().map(|node| node.name.clone())),
            Children::Groups(below) => groups.extend(below.iter().rev()),
        }
    }
    names
}

impl<'a> Topology<'a> {
    fn of(value: &'a Value) -> Result<Topology<'a>, InputError> {
        value.map("a topology")?;
        let name = value
            .get("topology")
            .ok_or_else(|| value.refuse("a topology has no key topology, its name".to_owned()))?;
        let name = name.text("the name of a topology")?;
        let what = format!("topology {}", shown(name));
        value.only_keys(&what, &[&["topology", "cluster_default"][..], &TYPES].concat())?;
        let is_default =
            value.get("cluster_default").map_or(Ok(false), |v| v.truth("cluster_default"))?;
        let is_off = |kind, inner: &Value| kind == "flat" && inner.truth(kind) == Ok(false);
        let mut types = TYPES
            .iter()
            .filter_map(|&kind| value.get(kind).map(|inner| (kind, inner)))
            .filter(|&(kind, inner)| !is_off(kind, inner));
        let wants = "needs one of tree, block and flat";
        let topology =
            |(kind, inner)| Topology { name, is_default, kind, value: inner, line: value.line };
        match (types.next(), types.next()) {
            (Some(only), None) => Ok(topology(only)),
            (Some((one, first)), Some((other, second))) => Err(InputError::at(
                first.line.max(second.line),
                format!("{what} {wants}; it has {one} and {other}"),
            )),
            (None, _) => Err(value.refuse(format!("{what} {wants}"))),
        }
    }

    fn refuse(&self, what: String) -> InputError {
        InputError::at(self.line, format!("topology {} {what}", shown(self.name)))
    }
}

fn choose<'a>(
    topologies: &'a [Topology<'a>],
    options: &MachineOptions,
) -> Result<&'a Topology<'a>, InputError> {
    let chosen = match &options.topology {
        Some(name) => topologies.iter().find(|topology| topology.name == name),
        None => topologies.iter().find(|topology| topology.is_default).or(topologies.first()),
    };
    chosen.ok_or_else(|| match &options.topology {
        Some(name) => {
            let names: Vec<&str> = topologies.iter().map(|topology| topology.name).collect();
            let message =
                format!("there is no topology {}; there are {}", shown(name), names.join(", "));
            InputError::whole(message)
        }
        None => InputError::whole("there is no topology"),
    })
}

fn tree(topology: &Topology, options: &MachineOptions) -> Result<Read, InputError> {
    let mut warnings = Vec::new();
    let mut read =
        of_switches(switches(topology, &mut warnings)?, NodeKind::default(), options.only_trees)?;
    read.notes.splice(0..0, warnings);
    Ok(read)
}

fn switches(
    topology: &Topology,
    warnings: &mut Vec<String>,
) -> Result<Vec<DescribedSwitch>, InputError> {
    topology.value.only_keys("tree", &["switches"])?;
    let list = topology.value.get("switches").map_or(Ok(&[][..]), |list| list.list("switches"))?;
    if list.is_empty() {
        return Err(topology.refuse("has no switches".to_owned()));
    }
    list.iter().map(|value| switch(value, warnings)).collect()
}

fn switch(value: &Value, warnings: &mut Vec<String>) -> Result<DescribedSwitch, InputError> {
    value.only_keys("a switch", &["switch", "children", "nodes"])?;
    let name = named(value, "switch")?;
    let text = |key| value.get(key).map(|value| hosts(value, key)).transpose();
    let below = match (text("nodes")?, text("children")?) {
        (None, Some(children)) => Below::Switches(children),
        (nodes, children) => {
            if nodes.is_some() && children.is_some() {
                let line = value.line;
                warnings.push(format!("switch {name} of line {line} has nodes and children: its nodes count, as in Slurm"));
            }
            Below::Nodes(nodes.unwrap_or_default())
        }
    };
    Ok(DescribedSwitch { name, switches: Vec::new(), below, place: value.line.into() })
}

fn named(value: &Value, key: &str) -> Result<String, InputError> {
    let name =
        value.get(key).map(|name| name.text(key)).transpose()?.filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| value.refuse(format!("a {key} has no name")))
}

/// Returns a hostlist. Refuses one that only Slurm could expand.
fn hosts(value: &Value, key: &str) -> Result<String, InputError> {
    let hosts = value.text(key)?;
    if no_hostlist(hosts) {
        return Err(value.refuse(format!("{key} {} is no list of names", shown(hosts))));
    }
    Ok(hosts.to_owned())
}

fn block_list(topology: &Topology) -> Result<Vec<DescribedBlock>, InputError> {
    let list = topology.value.get("blocks").map_or(Ok(&[][..]), |list| list.list("blocks"))?;
    if list.is_empty() {
        return Err(topology.refuse("has no blocks".to_owned()));
    }
    let block = |value: &Value| {
        value.only_keys("a block", &["block", "nodes"])?;
        let nodes = value.get("nodes").map_or(Ok(String::new()), |nodes| hosts(nodes, "nodes"))?;
        Ok(DescribedBlock { name: named(value, "block")?, nodes, place: value.line.into() })
    };
    list.iter().map(block).collect()
}

fn block(topology: &Topology) -> Result<Read, InputError> {
    topology.value.only_keys("block", &["block_sizes", "blocks"])?;
    let sizes = match topology.value.get("block_sizes") {
        None => DescribedSizes::default(),
        Some(list) => {
            let words = list.list("block_sizes")?.iter().map(|size| size.text("a block size"));
            DescribedSizes::of(&words.collect::<Result<Vec<_>, _>>()?, list.line.into())?
        }
    };
    blocks(&block_list(topology)?, sizes)
}

/// Returns all nodes of the file's other topologies, on one switch.
fn flat(topology: &Topology, all: &[Topology]) -> Result<Read, InputError> {
    let mut seen = HashSet::new();
    let mut nodes = Vec::new();
    for other in all {
        let lists: Vec<(String, LinePosition)> = match other.kind {
            "tree" => switches(other, &mut Vec::new())?
                .into_iter()
                .filter_map(|switch| match switch.below {
                    Below::Nodes(nodes) => Some((nodes, switch.place)),
                    Below::Switches(_) => None,
                })
                .collect(),
            "block" => block_list(other)?.into_iter().map(|b| (b.nodes, b.place)).collect(),
            _ => continue,
        };
        for (list, place) in lists {
            let names = expand(&list).map_err(|error| place.of(error))?;
            nodes.extend(names.into_iter().filter(|name| seen.insert(name.clone())));
        }
    }
    if nodes.is_empty() {
        return Err(
            topology.refuse("is flat, and no other topology of the file names nodes".to_owned())
        );
    }
    let count = nodes.len();
    let description = Description {
        name: UNNAMED.to_owned(),
        sites: vec![site(vec![leaf(topology.name, &nodes)])],
        kinds: vec![NodeKind::default()],
        ..Description::default()
    };
    let note = format!(
        "topology {} is flat and names no nodes: the {count} nodes of the other topologies hang on one switch",
        shown(topology.name)
    );
    Ok(Read::with_notes(description, vec![note]))
}
