//! Writes Topolane's own machine description, `machine.toml`.

use std::collections::HashMap;
use std::fmt::Write;

use super::names::{NameLimits, Names};
use crate::description::{
    Children, Description, Detours, DragonflyDescription, Group, HyperXDescription,
    NodeDescription, SiteDescription, TorusDescription, WiringDescription,
};
use crate::fabric::Fabric;
use crate::hostlist::compress;
use crate::node_kind::NodeKind;
use crate::presets::regular_group;
use crate::read::nodes_mut;

/// Returns the fabric in Topolane's own format. Regular sites whose groups have default names are written as
/// PGFT(children; parents; cables), others switch by switch. Reading the text gives the same fabric, unless a name
/// cannot be in a hostlist or two groups of a site share a name.
pub fn machine_toml(fabric: &Fabric) -> String {
    machine_toml_named(fabric, &mut Names::new(NameLimits::TOML))
}

pub(super) fn machine_toml_named(fabric: &Fabric, names: &mut Names) -> String {
    names.begin(NameLimits::TOML);
    let nodes = names.nodes(fabric);
    let mut description = fabric.description();
    rename_nodes(&mut description, &nodes);
    rename_others(&mut description, names);
    rename_switches(&mut description, names);
    let mut text = format!("name = {}\n", quoted(&description.name));
    if !description.block_sizes.is_empty() {
        let _ = writeln!(text, "block-sizes = {:?}", description.block_sizes);
    }
    text.push_str("\n[node]\n");
    let default = &description.kinds[0];
    put_kind(&mut text, default, default.flow_bandwidth, !default.resources.is_empty());
    for (index, kind) in description.kinds.iter().enumerate().skip(1) {
        let own = (0..fabric.nodes()).filter(|&node| fabric.kind_index(node) == index as u32);
        let names: Vec<String> = own.map(|node| nodes[node as usize].clone()).collect();
        let _ = writeln!(text, "\n[[node-kind]]\nnodes = {}", quoted(&hostlist(&names)));
        // A missing key would mean the value of [node].
        let as_interface = default.flow_bandwidth.map(|_| kind.lone_flow());
        let resources_differ = kind.resources != default.resources;
        put_kind(&mut text, kind, kind.flow_bandwidth.or(as_interface), resources_differ);
    }
    let mut before = 0;
    for site in &description.sites {
        before += put_site(&mut text, &description, site, before, names);
    }
    for wan in &description.wans {
        let (a, b) = (quoted(&wan.between.0), quoted(&wan.between.1));
        let _ = writeln!(
            text,
            "\n[[wan]]\nbetween = [{a}, {b}]\nlatency = {:?}\nbandwidth = {:?}",
            wan.latency, wan.bandwidth
        );
    }
    for domain in &description.domains {
        let _ = writeln!(
            text,
            "\n[[domain]]\nname = {}\nnodes = {}\nbandwidth = {:?}",
            quoted(&domain.name),
            quoted(&hostlist(&domain.nodes)),
            domain.bandwidth
        );
    }
    match &description.wiring {
        WiringDescription::Tree => {}
        WiringDescription::Dragonfly(dragonfly) => put_dragonfly(&mut text, dragonfly),
        WiringDescription::Torus(torus) => put_torus(&mut text, torus),
        WiringDescription::HyperX(hyperx) => put_hyperx(&mut text, hyperx),
    }
    text
}

/// Writes the groups of switches and the cables between switches, with a table for each bandwidth.
fn put_dragonfly(text: &mut String, dragonfly: &DragonflyDescription) {
    let groups: Vec<String> =
        dragonfly.groups.iter().map(|group| format!("  {},\n", quoted(&hostlist(group)))).collect();
    let _ = writeln!(text, "\n[dragonfly]\ngroups = [ # switches\n{}]", groups.concat());
    if let Some(Detours { part, share }) = dragonfly.detours {
        let _ = writeln!(text, "detours = {part:?}\nshare = {share:?}");
    }
    let mut bandwidths: Vec<f64> = dragonfly.cables.iter().map(|cable| cable.bandwidth).collect();
    bandwidths.sort_by(f64::total_cmp);
    bandwidths.dedup();
    for bandwidth in bandwidths {
        let _ = writeln!(text, "\n  [[dragonfly.cables]]\n  bandwidth = {bandwidth:?}");
        text.push_str("  between = [ # two switches, counted over all groups from 0; cables\n");
        let of_bandwidth = dragonfly
            .cables
            .iter()
            .filter(|cable| cable.bandwidth.to_bits() == bandwidth.to_bits());
        let cables: Vec<String> = of_bandwidth
            .map(|cable| format!("[{}, {}, {}]", cable.between.0, cable.between.1, cable.count))
            .collect();
        for row in cables.chunks(8) {
            let _ = writeln!(text, "    {},", row.join(", "));
        }
        text.push_str("  ]\n");
    }
}

fn put_torus(text: &mut String, torus: &TorusDescription) {
    let _ = writeln!(
        text,
        "\n[torus]\ndimensions = {:?}\nwrap = {:?}\nbandwidth = {:?}",
        torus.dimensions, torus.wrap, torus.bandwidth
    );
    if !torus.cube.is_empty() {
        let _ = writeln!(text, "cube = {:?}", torus.cube);
    }
    if !torus.routers.is_empty() {
        let _ = writeln!(text, "routers = {}", quoted(&hostlist(&torus.routers)));
    }
}

fn put_hyperx(text: &mut String, hyperx: &HyperXDescription) {
    let _ = writeln!(
        text,
        "\n[hyperx]\ndimensions = {:?}\ncables = {:?}\nbandwidth = {:?}",
        hyperx.dimensions, hyperx.cables, hyperx.bandwidth
    );
    if !hyperx.switches.is_empty() {
        let _ = writeln!(text, "switches = {}", quoted(&hostlist(&hyperx.switches)));
    }
}

/// Shortens the names of the switches of a wiring to what a hostlist can hold, also those of its leaves.
fn rename_switches(description: &mut Description, names: &mut Names) {
    names.begin(NameLimits::TOML);
    let mut renamed = HashMap::new();
    let switches: Vec<&mut String> = match &mut description.wiring {
        WiringDescription::Tree => return,
        WiringDescription::Dragonfly(dragonfly) => dragonfly.groups.iter_mut().flatten().collect(),
        WiringDescription::Torus(torus) => torus.routers.iter_mut().collect(),
        WiringDescription::HyperX(hyperx) => hyperx.switches.iter_mut().collect(),
    };
    for name in switches {
        let written = names.unique("switch", name, "switch");
        renamed.insert(std::mem::replace(name, written.clone()), written);
    }
    for site in &mut description.sites {
        rename_leaves(&mut site.root, &renamed);
    }
}

fn rename_leaves(group: &mut Group, renamed: &HashMap<String, String>) {
    match &mut group.children {
        Children::Groups(groups) => {
            for group in groups {
                rename_leaves(group, renamed);
            }
        }
        Children::Nodes(_) => {
            if let Some(name) = renamed.get(&group.name) {
                group.name.clone_from(name);
            }
        }
    }
}

/// Renames the nodes of a description, and in its domains; `names` are in node order.
fn rename_nodes(description: &mut Description, names: &[String]) {
    let mut renamed = HashMap::new();
    for (node, name) in nodes_mut(description).into_iter().zip(names) {
        if node.name != *name {
            renamed.insert(std::mem::replace(&mut node.name, name.clone()), name);
        }
    }
    if renamed.is_empty() {
        return;
    }
    for name in description.domains.iter_mut().flat_map(|domain| &mut domain.nodes) {
        if let Some(&other) = renamed.get(name) {
            name.clone_from(other);
        }
    }
}

/// Shortens the names of the machine, its sites, domains and parallel switches to what the reader accepts.
fn rename_others(description: &mut Description, names: &mut Names) {
    names.begin(NameLimits::TEXT);
    description.name = names.unique("machine", &description.name, "");
    names.begin(NameLimits::TEXT);
    for site in &mut description.sites {
        let name = names.unique("site", &site.root.name, "site");
        for wan in &mut description.wans {
            for end in [&mut wan.between.0, &mut wan.between.1] {
                if *end == site.root.name {
                    end.clone_from(&name);
                }
            }
        }
        site.root.name = name;
        rename_parallel(&mut site.root, names);
    }
    names.begin(NameLimits::TEXT);
    for domain in &mut description.domains {
        domain.name = names.unique("domain", &domain.name, "domain");
    }
}

fn rename_parallel(group: &mut Group, names: &mut Names) {
    let mut own = Names::new(NameLimits::TEXT);
    for name in &mut group.switches {
        *name = own.unique("switch", name, &group.name);
    }
    names.add(own);
    if let Children::Groups(groups) = &mut group.children {
        for group in groups {
            rename_parallel(group, names);
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A key, in quotes if TOML requires them.
fn key(name: &str) -> String {
    let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { quoted(name) }
}

fn hostlist(names: &[String]) -> String {
    compress(names.iter().map(String::as_str))
}

fn put_kind(text: &mut String, kind: &NodeKind, flow_bandwidth: Option<f64>, resources: bool) {
    let _ = writeln!(
        text,
        "sockets = {}\ncores-per-socket = {}\ncore-speed = {:?}\nmemory = {}\nnics = {}\n\
         nic-bandwidth = {:?}",
        kind.sockets,
        kind.cores_per_socket,
        kind.core_speed,
        kind.memory,
        kind.nics,
        kind.nic_bandwidth
    );
    if let Some(bandwidth) = flow_bandwidth {
        let _ = writeln!(text, "flow-bandwidth = {bandwidth:?}");
    }
    let _ = write!(
        text,
        "latency = {:?}\npenalty = {{ model = {}",
        kind.latency,
        quoted(kind.penalty.name())
    );
    for (name, factor) in kind.penalty.factors() {
        let _ = write!(text, ", {name} = {factor:?}");
    }
    let _ = writeln!(
        text,
        " }}\ncopy-bandwidth = {:?}\ncopy-latency = {:?}\nmemory-bandwidth = {:?}",
        kind.copy_bandwidth, kind.copy_latency, kind.memory_bandwidth
    );
    if resources {
        let counts = kind.resources.iter().map(|(name, count)| format!("{} = {count}", key(name)));
        let _ = writeln!(text, "resources = {{{}}}", counts.collect::<Vec<_>>().join(", "));
    }
}

/// Writes one site and returns the number of its nodes; `before` nodes come before it.
fn put_site(
    text: &mut String,
    machine: &Description,
    site: &SiteDescription,
    before: usize,
    taken: &mut Names,
) -> usize {
    let mut names = Vec::new();
    node_names(&site.root, &mut names);
    let _ = writeln!(text, "\n[[site]]\nname = {}", quoted(&site.root.name));
    let regular = regular_children(&site.root);
    if let Some(children) = &regular {
        let _ = writeln!(text, "children = {children:?}");
        let default = |(index, name): (usize, &String)| {
            *name == format!("{}{}", machine.name, before + index + 1)
        };
        if !names.iter().enumerate().all(default) {
            let _ = writeln!(text, "nodes = {}", quoted(&hostlist(&names)));
        }
    }
    let parents: Vec<u32> = site.cabling.iter().map(|cabling| cabling.parents).collect();
    let cables: Vec<u32> = site.cabling.iter().map(|cabling| cabling.cables).collect();
    let bandwidth: Vec<f64> = site.cabling.iter().map(|cabling| cabling.bandwidth).collect();
    let _ = writeln!(text, "parents = {parents:?}\ncables = {cables:?}\nbandwidth = {bandwidth:?}");
    if site.cabling.iter().any(|cabling| cabling.joined) {
        let joined: Vec<bool> = site.cabling.iter().map(|cabling| cabling.joined).collect();
        let _ = writeln!(text, "joined = {joined:?}");
    }
    if !site.missing.is_empty() {
        let _ = writeln!(text, "missing = [ # level, group, switch, parent, cable");
        for cable in &site.missing {
            let place = [cable.group, cable.switch, cable.parent, cable.cable];
            let [group, switch, parent, cable_number] = place;
            let level = cable.level;
            let _ = writeln!(text, "  [{level}, {group}, {switch}, {parent}, {cable_number}],");
        }
        let _ = writeln!(text, "]");
    }
    if regular.is_none() {
        taken.begin(NameLimits::TOML);
        put_switch(text, &site.root, &site.root.name, taken);
    }
    names.len()
}

fn node_names(group: &Group, names: &mut Vec<String>) {
    match &group.children {
        Children::Nodes(nodes) => names.extend(nodes.iter().map(|node| node.name.clone())),
        Children::Groups(groups) => groups.iter().for_each(|group| node_names(group, names)),
    }
}

/// The children per group of each level, from the nodes up, if the group equals the regular tree of that shape,
/// including group names.
fn regular_children(root: &Group) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    let mut first = root;
    loop {
        match &first.children {
            Children::Nodes(nodes) => {
                children.push(nodes.len() as u32);
                break;
            }
            Children::Groups(groups) => {
                children.push(groups.len() as u32);
                first = groups.first()?;
            }
        }
    }
    children.reverse();
    let mut next = vec![0; children.len() + 1];
    let mut nodes = std::iter::repeat_with(|| NodeDescription { name: String::new(), kind: 0 });
    let regular = regular_group(&root.name, &children, children.len(), &mut next, &mut nodes);
    same_groups(&regular, root).then_some(children)
}

fn same_groups(a: &Group, b: &Group) -> bool {
    let below = match (&a.children, &b.children) {
        (Children::Nodes(a), Children::Nodes(b)) => a.len() == b.len(),
        (Children::Groups(a), Children::Groups(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_groups(a, b))
        }
        _ => false,
    };
    below && a.name == b.name && a.switches == b.switches
}

/// Writes the tables of a group, those below it first. Returns the name that it got.
fn put_switch(text: &mut String, group: &Group, site: &str, taken: &mut Names) -> String {
    let (key, below): (_, Vec<String>) = match &group.children {
        Children::Nodes(nodes) => ("nodes", nodes.iter().map(|node| node.name.clone()).collect()),
        Children::Groups(groups) => {
            ("switches", groups.iter().map(|group| put_switch(text, group, site, taken)).collect())
        }
    };
    let name = taken.unique("switch", &group.name, site);
    let _ = writeln!(
        text,
        "\n  [[site.switch]]\n  name = {}\n  {key} = {}",
        quoted(&name),
        quoted(&hostlist(&below))
    );
    if !group.switches.is_empty() {
        let names = toml::Value::from(group.switches.clone());
        let _ = writeln!(text, "  switch-names = {names}");
    }
    name
}
