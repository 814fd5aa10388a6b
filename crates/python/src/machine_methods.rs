//! The Python methods of `Machine`.

use std::collections::BTreeMap;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_fabric::resources::ResourceCounts;
use topolane_fabric::{
    CrossRail, Direction, Fabric, NodeKind, NodeSet, PRESETS, Rule, join, preset, read, write,
};
use topolane_placement::{Quality, homes, least_aph};

use crate::answering::answering;
use crate::error::{bad_input, input_error};
use crate::machine::Machine;
use crate::other_network::OtherNetwork;
use crate::policy::policy_on;
use crate::routing::Routing;
use crate::routing::needs_tree;
use crate::tables::{LinkRow, link_rows};

/// (start, end, name) of a group.
type GroupRow = (u32, u32, String);
/// A route with rails: whether it uses NVLink in the first node, whether in the last, and its links.
type RailRow = (bool, bool, Vec<(u32, &'static str)>);
/// A network of a machine file: name, file, servers, and the lines of the name and of the servers.
type NetworkRow = (String, String, Vec<String>, (usize, usize));

/// The only format that can name other networks.
const OWN: &str = "toml";

#[pymethods]
impl Machine {
    /// Returns the machine of this name; None if there is none.
    #[staticmethod]
    fn preset(py: Python<'_>, name: String) -> PyResult<Option<Machine>> {
        let fabric = answering(py, move || {
            let made = preset(&name).map(|made| made.and_then(|own| Fabric::build(&own)));
            made.transpose()
        })?;
        Ok(fabric.map_err(input_error)?.map(Machine::from))
    }

    /// Reads the machine that `text` describes. `format` is a name from `machine_formats`, or None to guess it from the
    /// file name and the text. If the text has several topologies, `topology` is read.
    #[staticmethod]
    #[pyo3(signature = (text, source, format=None, *, topology=None, sub_domains=false, hosts=None, included=read::Included::new(), only_trees=false))]
    #[allow(clippy::too_many_arguments)]
    fn parse(
        py: Python<'_>,
        text: String,
        source: &str,
        format: Option<&str>,
        topology: Option<String>,
        sub_domains: bool,
        hosts: Option<String>,
        included: read::Included,
        only_trees: bool,
    ) -> PyResult<Machine> {
        let format = match format {
            Some(name) => read::Format::named(name)
                .ok_or_else(|| bad_input(format!("unknown machine format {name:?}")))?,
            None => read::Format::guess(source, &text)
                .ok_or_else(|| bad_input(read::no_format(source)))?,
        };
        let options = read::MachineOptions { topology, sub_domains, hosts, included, only_trees };
        let mut own_name = None;
        if format != read::Format::Toml {
            // Only our own format names the machine.
            let unzipped = source.strip_suffix(".gz").unwrap_or(source);
            let stem = std::path::Path::new(unzipped).file_stem();
            own_name = Some(stem.map_or_else(String::new, |s| s.to_string_lossy().into_owned()));
        }
        let made = answering(py, move || {
            let read::Read { mut description, notes, networks } =
                read::read(&text, format, &options)?;
            description.name = own_name.unwrap_or(description.name);
            let fabric = Fabric::build(&description)?;
            Ok((fabric, notes, networks))
        })?;
        let in_file = |error: topolane_fabric::InputError| input_error(error.in_file(source));
        let (fabric, notes, entries) = made.map_err(in_file)?;
        let knows_cables = format.row().cables;
        Ok(Machine { notes, knows_cables, entries, ..Machine::from(fabric) })
    }

    /// The files that a text includes: the line and name of each. Only a `topology.conf` includes files.
    #[staticmethod]
    #[pyo3(signature = (text, source, format=None))]
    fn includes(text: &str, source: &str, format: Option<&str>) -> Vec<(usize, String)> {
        let format = format.map_or_else(|| read::Format::guess(source, text), read::Format::named);
        if format == Some(read::Format::SlurmTopology) { read::includes(text) } else { Vec::new() }
    }

    /// Combines two descriptions of the same nodes: the cables of this machine, and nodes that only `tree` names, on
    /// the switches of their neighbours. Also returns sentences about assumptions.
    fn joined(&self, py: Python<'_>, tree: &Machine) -> PyResult<(Machine, Vec<String>)> {
        let (own, other) = (Arc::clone(&self.fabric), Arc::clone(&tree.fabric));
        needs_tree(&own, "a join")?;
        needs_tree(&other, "a join")?;
        let made = answering(py, move || {
            let joined = join(&own.description(), &other.description())?;
            Ok((Fabric::build(&joined.description)?, joined.sentences()))
        })?;
        let (fabric, sentences) = made.map_err(input_error)?;
        let mut machine = self.over(fabric);
        machine.entries.extend(tree.entries.iter().cloned());
        machine.networks.extend(tree.networks.iter().cloned());
        Ok((machine, sentences))
    }

    /// The format of a file that `parse` would guess from its name and text; None if neither decides.
    #[staticmethod]
    fn format_of(text: &str, source: &str) -> Option<&'static str> {
        read::Format::guess(source, text).map(|format| format.row().name)
    }

    /// Returns the machine of leaves, each given as (groups from its site down to the leaf, hosts).
    #[staticmethod]
    fn of(name: &str, leaves: Vec<read::LeafBranch>) -> PyResult<Machine> {
        let fabric = read::branches(name, &leaves, NodeKind::default())
            .and_then(|description| Fabric::build(&description))
            .map_err(input_error)?;
        Ok(Machine::from(fabric))
    }

    /// Returns the machine with only these nodes, for example those of a partition.
    fn only(&self, nodes: Vec<u32>) -> PyResult<Machine> {
        let nodes = NodeSet::of(self.fabric.nodes(), nodes);
        let fabric = self.fabric.only(&nodes).map_err(input_error)?;
        let whole = self.whole.as_ref().unwrap_or(&self.fabric);
        Ok(Machine { whole: Some(Arc::clone(whole)), ..self.over(fabric) })
    }

    /// Returns the machine with these numbers of cores and other resources on each node, by node index.
    fn counting(&self, counts: Vec<(u32, BTreeMap<String, u32>)>) -> PyResult<Machine> {
        let counts: Vec<(u32, ResourceCounts)> =
            counts.into_iter().map(|(cores, of)| (cores, of.into_iter().collect())).collect();
        let fabric = self.fabric.counting(&counts).map_err(input_error)?;
        Ok(self.over(fabric))
    }

    /// Returns the machine as text in a format of `machine_writers`.
    fn to(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let (writer, fabric) = (writer(format)?, Arc::clone(&self.fabric));
        writer.check(&fabric).map_err(input_error)?;
        let mut text = answering(py, move || (writer.write)(&fabric))?;
        if format == OWN {
            text.extend(self.entries.iter().map(read::NetworkEntry::toml));
        }
        Ok(text)
    }

    /// Sentences about what the machine has and a format cannot represent.
    fn lost(&self, format: &str) -> PyResult<Vec<String>> {
        let mut lost = writer(format)?.lost(&self.fabric);
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        if format != OWN && !names.is_empty() {
            let names = names.join(", ");
            lost.push(format!("{format} does not say other networks: {names} dropped"));
        }
        Ok(lost)
    }

    /// The other networks that its file names: (name, file, names of servers, lines of the name and of the servers).
    #[getter]
    fn network_entries(&self) -> Vec<NetworkRow> {
        let row = |entry: &read::NetworkEntry| {
            (entry.name.clone(), entry.file.clone(), entry.servers.clone(), entry.lines)
        };
        self.entries.iter().map(row).collect()
    }

    /// The other networks over its nodes.
    #[getter]
    fn networks(&self) -> Vec<OtherNetwork> {
        self.networks.clone()
    }

    /// Returns the machine with these other networks.
    fn with_networks(&self, networks: Vec<OtherNetwork>) -> Machine {
        Machine { networks, ..self.clone() }
    }

    /// Whether the machine's file records cables; if not, one cable is assumed everywhere.
    #[getter]
    fn knows_cables(&self) -> bool {
        self.knows_cables
    }

    /// Returns the machine with other notes.
    fn with_notes(&self, notes: Vec<String>) -> Machine {
        Machine { notes, ..self.clone() }
    }

    /// (name, nodes, bandwidth of each node inside in B/s) of every domain.
    fn domains(&self) -> Vec<(&str, Vec<u32>, f64)> {
        let fabric = &self.fabric;
        let row = |domain| {
            let nodes = fabric.domain_nodes(domain).to_vec();
            (fabric.domain_name(domain), nodes, fabric.domain_bandwidth(domain))
        };
        (0..fabric.domains()).map(row).collect()
    }

    /// The block sizes that a scheduler uses for domains, in nodes.
    #[getter]
    fn block_sizes(&self) -> Vec<u32> {
        self.fabric.block_sizes().to_vec()
    }

    /// Sentences about what was assumed, chosen or skipped when it was read.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Returns the tree as text, in at most `limit` lines.
    fn tree(&self, limit: usize) -> String {
        write::tree(&self.fabric, limit)
    }

    #[getter]
    fn name(&self) -> &str {
        self.fabric.name()
    }

    /// The number of nodes.
    #[getter]
    fn nodes(&self) -> u32 {
        self.fabric.nodes()
    }

    /// The number of switch levels.
    #[getter]
    fn depth(&self) -> usize {
        self.fabric.depth()
    }

    /// The number of links with an id: cables (including missing ones) and WAN links.
    #[getter]
    fn links(&self) -> u32 {
        self.fabric.links()
    }

    /// The number of missing cables.
    #[getter]
    fn missing_cables(&self) -> usize {
        self.fabric.missing_cables().len()
    }

    /// The cores of each node kind, with the number of nodes of that kind.
    fn cores(&self) -> Vec<(u32, usize)> {
        let of_kind = |kind: u32| {
            (0..self.fabric.nodes()).filter(move |&n| self.fabric.kind_index(n) == kind)
        };
        (0..self.fabric.kinds().len())
            .map(|kind| (self.fabric.kinds()[kind].cores(), of_kind(kind as u32).count()))
            .collect()
    }

    /// The names of the resources of its nodes: cores, memory, and those of the machine file.
    #[getter]
    fn resources(&self) -> Vec<String> {
        self.fabric.resources().names().to_vec()
    }

    /// The amount of each resource on a node.
    fn resources_of(&self, node: u32) -> PyResult<BTreeMap<String, u64>> {
        self.check(node)?;
        let names = self.fabric.resources().names().iter().cloned();
        Ok(names.zip(self.fabric.counts(node).iter().copied()).collect())
    }

    /// (start, end, name) of every group of a level from 1 (leaves) to `depth` (sites).
    fn groups(&self, level: usize) -> PyResult<Vec<GroupRow>> {
        if level == 0 || level > self.fabric.depth() {
            return Err(bad_input(format!(
                "level must be from 1 to {}, not {level}",
                self.fabric.depth()
            )));
        }
        Ok((0..self.fabric.groups(level))
            .map(|group| {
                let range = self.fabric.node_range(level, group);
                (range.start, range.end, self.fabric.group_name(level, group).to_owned())
            })
            .collect())
    }

    fn node_name(&self, node: u32) -> PyResult<&str> {
        self.check(node)?;
        Ok(self.fabric.node_name(node))
    }

    /// The node of this name; None if there is none.
    fn node_named(&self, name: &str) -> Option<u32> {
        self.fabric.node_named(name)
    }

    /// Whether a node of this name is on the whole machine but not in this part of it.
    fn leaves_out(&self, name: &str) -> bool {
        let is_of_whole = self.whole.as_ref().is_some_and(|whole| whole.node_named(name).is_some());
        is_of_whole && self.fabric.node_named(name).is_none()
    }

    /// The nodes that a hostlist expression names.
    fn nodes_named(&self, hosts: &str) -> PyResult<Vec<u32>> {
        topolane_fabric::expand(hosts)
            .map_err(input_error)?
            .into_iter()
            .map(|name| {
                self.fabric.node_named(&name).ok_or_else(|| {
                    bad_input(format!("machine {} has no node {name}", self.fabric.name()))
                })
            })
            .collect()
    }

    /// Of a dragonfly whose routing adapts to load: the most that takes detours of the bytes between groups, and the share
    /// of each cable between its groups that others leave to a job with a promise. None for others.
    #[getter]
    fn detours(&self) -> Option<(f64, f64)> {
        let detours =
            self.fabric.wiring().dragonfly().and_then(topolane_fabric::Dragonfly::detours);
        detours.map(|detours| (detours.part, detours.share))
    }

    /// Returns the hostlist expression of some nodes.
    fn hostlist(&self, nodes: Vec<u32>) -> PyResult<String> {
        self.check_all(&nodes)?;
        Ok(topolane_fabric::compress(nodes.iter().map(|&node| self.fabric.node_name(node))))
    }

    /// The kind of wiring: tree, dragonfly, torus or HyperX.
    #[getter]
    fn wiring(&self) -> &'static str {
        self.fabric.wiring().name()
    }

    /// The hops between two nodes; None if no link connects them.
    fn hops(&self, a: u32, b: u32) -> PyResult<Option<u32>> {
        self.check(a)?;
        self.check(b)?;
        Ok(self.fabric.hops(a, b))
    }

    /// The hops from a node to every node, as uint32; 0 if no link connects them.
    fn hops_from<'py>(&self, py: Python<'py>, node: u32) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.check(node)?;
        let hops = |other| self.fabric.hops(node, other).unwrap_or(0);
        Ok((0..self.fabric.nodes()).map(hops).collect::<Vec<u32>>().into_pyarray(py))
    }

    /// (level, name) of the lowest group that holds all of these nodes; the name is None if no site does.
    fn home(&self, nodes: Vec<u32>) -> PyResult<(usize, Option<&str>)> {
        self.check_all(&nodes)?;
        let (Some(&first), fabric) = (nodes.first(), &self.fabric) else {
            return Err(bad_input("the home of no node is asked for"));
        };
        let holds_all = |&level: &usize| {
            let home = fabric.group(level, first);
            nodes.iter().all(|&node| fabric.group(level, node) == home)
        };
        Ok(match (1..=fabric.depth()).find(holds_all) {
            Some(level) => (level, Some(fabric.group_name(level, fabric.group(level, first)))),
            None => (fabric.depth() + 1, None),
        })
    }

    /// The index of the leaf of each of these nodes.
    fn leaves_of(&self, nodes: Vec<u32>) -> PyResult<Vec<u32>> {
        self.check_all(&nodes)?;
        Ok(nodes.iter().map(|&node| self.fabric.group(1, node)).collect())
    }

    /// (level, name, number of these nodes, number of all nodes) of every group with some of these nodes. A group comes
    /// before those inside it, down to the nodes at level 0.
    fn outline(&self, nodes: Vec<u32>) -> PyResult<Vec<(usize, &str, usize, usize)>> {
        self.check_all(&nodes)?;
        let mut rows = Vec::new();
        let mut sorted = nodes;
        sorted.sort_unstable();
        self.outline_of(self.fabric.depth(), &sorted, &mut rows);
        Ok(rows)
    }

    /// The node ranges (start, end) of the groups with at least `nodes` nodes, at the lowest level that has one.
    fn homes(&self, nodes: u32) -> Vec<(u32, u32)> {
        let (level, groups) = homes(&self.fabric, nodes);
        let range = |group| self.fabric.node_range(level, group);
        groups.into_iter().map(range).map(|range| (range.start, range.end)).collect()
    }

    /// The d-mod-k route: (cable, "up" or "down") for every link; None if there is no route.
    fn route(&self, a: u32, b: u32) -> PyResult<Option<Vec<(u32, &'static str)>>> {
        self.check(a)?;
        self.check(b)?;
        needs_tree(&self.fabric, "a route")?;
        let way = |direction| if direction == Direction::Up { "up" } else { "down" };
        let route = self.fabric.route(a, b);
        Ok(route.map(|links| links.iter().map(|l| (l.cable, way(l.direction))).collect()))
    }

    /// (number of rails, whether they meet in switches) of every site.
    fn rails(&self) -> Vec<(u32, bool)> {
        let fabric = &self.fabric;
        (0..fabric.sites()).map(|site| (fabric.rails(site), fabric.rails_meet(site))).collect()
    }

    /// By level from the leaves: the most rails of any site that have switches of their own there.
    fn rails_by_level(&self) -> Vec<u32> {
        let fabric = &self.fabric;
        let most = |level| (0..fabric.sites()).map(|site| fabric.rails_at(site, level)).max();
        (1..=fabric.depth()).map(|level| most(level).unwrap_or(1)).collect()
    }

    /// The route from the GPU on one rail of a node to the GPU on a rail of another. Returns whether it uses NVLink in
    /// the first node, whether in the last, and (cable, "up" or "down") for every link; None if there is no route.
    /// `cross_rail` is "nvlink" or "spines".
    fn rail_route(
        &self,
        nodes: (u32, u32),
        rails: (u32, u32),
        cross_rail: &str,
    ) -> PyResult<Option<RailRow>> {
        self.check_all(&[nodes.0, nodes.1])?;
        let cross = CrossRail::named(cross_rail).ok_or_else(|| {
            bad_input(format!("cross-rail is nvlink or spines, not {cross_rail}"))
        })?;
        let fabric = &self.fabric;
        needs_tree(fabric, "a route")?;
        let site = fabric.site_of_group(0, nodes.0);
        let highest = rails.0.max(rails.1);
        if highest >= fabric.rails(site) {
            let rails = fabric.rails(site);
            return Err(bad_input(format!(
                "there is no rail {highest} in {}, which has {rails}, from 0",
                fabric.group_name(fabric.depth(), site)
            )));
        }
        let way = |direction| if direction == Direction::Up { "up" } else { "down" };
        let route = fabric.rail_route(Rule::DestinationModK, nodes, rails, cross);
        Ok(route.map(|route| {
            let links = route.links.iter().map(|l| (l.cable, way(l.direction))).collect();
            (route.nvlink_first, route.nvlink_last, links)
        }))
    }

    /// Returns the routing of this name; `default` is the first of the machine's wiring.
    #[pyo3(signature = (name, seed=0))]
    fn routing(&self, name: &str, seed: u64) -> PyResult<Routing> {
        Routing::named(&self.fabric, name, seed)
    }

    /// (average pairwise hops, hop-bytes for one byte per pair) of some nodes.
    fn quality(&self, nodes: Vec<u32>) -> PyResult<(f64, f64)> {
        self.check_all(&nodes)?;
        let quality = Quality::of(&self.fabric, &nodes);
        Ok((quality.aph, quality.pair_hops))
    }

    /// Returns the routing by forwarding tables. It needs a dump of `opensm` or `dump_fts`, and the output of
    /// `ibnetdiscover` from which the machine was read, each with its file name.
    fn tables(
        &self,
        py: Python<'_>,
        tables: String,
        net: String,
        tables_source: String,
        net_source: String,
    ) -> PyResult<Routing> {
        let fabric = Arc::clone(&self.fabric);
        let routing = answering(py, move || {
            let tables = read::NamedText { text: &tables, name: &tables_source };
            read::lfts(&fabric, tables, read::NamedText { text: &net, name: &net_source })
        })?;
        Ok(Routing { routing: Arc::new(routing.map_err(input_error)?) })
    }

    /// (lower end, its group, upper end, its group, number among parallel cables or None) of every link, by id.
    fn link_names(&self) -> Vec<LinkRow> {
        link_rows(&self.fabric)
    }

    /// The cables of the tree that each text names: a link by its ends or id, or a switch or node.
    fn cables_named(&self, names: Vec<String>) -> PyResult<Vec<Vec<u32>>> {
        let links = write::link_names(&self.fabric);
        let cables = |name: &String| write::cables_named(&self.fabric, &links, name);
        names.iter().map(cables).collect::<Result<_, _>>().map_err(input_error)
    }

    /// Sentences about the parts of the machine where the policy cannot give jobs links of their own, or only some.
    fn limits(&self, policy: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let (policy, _) = policy_on(&self.fabric, policy, 0)?;
        let limits = policy.limits(&self.fabric);
        Ok(limits.iter().map(|limit| limit.sentence(&self.fabric)).collect())
    }

    /// The cables, ascending, that are missing in a later output of `ibnetdiscover`. `net` is the one from which the
    /// machine was read. Each comes with its file name.
    fn absent(
        &self,
        py: Python<'_>,
        net: String,
        now: String,
        net_source: String,
        now_source: String,
    ) -> PyResult<Vec<u32>> {
        let fabric = Arc::clone(&self.fabric);
        let gone = answering(py, move || {
            let net = read::NamedText { text: &net, name: &net_source };
            read::absent(&fabric, net, read::NamedText { text: &now, name: &now_source })
        })?;
        gone.map_err(input_error)
    }

    /// The least average pairwise hops of 1, 2, ... nodes on the empty machine.
    fn least_aph(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        let fabric = Arc::clone(&self.fabric);
        answering(py, move || least_aph(&fabric))
    }
}

impl Machine {
    /// Appends the rows for ascending nodes of one group of the level above, or of the whole machine.
    fn outline_of<'a>(
        &'a self,
        level: usize,
        nodes: &[u32],
        rows: &mut Vec<(usize, &'a str, usize, usize)>,
    ) {
        let fabric = &self.fabric;
        let group = |node| if level == 0 { node } else { fabric.group(level, node) };
        for inside in nodes.chunk_by(|&a, &b| group(a) == group(b)) {
            let group = group(inside[0]);
            let of = if level == 0 { 1 } else { fabric.node_range(level, group).len() };
            rows.push((level, fabric.group_name(level, group), inside.len(), of));
            if level > 0 {
                self.outline_of(level - 1, inside, rows);
            }
        }
    }

    fn check_all(&self, nodes: &[u32]) -> PyResult<()> {
        nodes.iter().try_for_each(|&node| self.check(node))
    }

    fn check(&self, node: u32) -> PyResult<()> {
        if node < self.fabric.nodes() {
            return Ok(());
        }
        Err(bad_input(format!("node {node} is not among the {} nodes", self.fabric.nodes())))
    }
}

/// (name, summary) of every built-in machine.
#[pyfunction]
pub fn presets() -> Vec<(&'static str, &'static str)> {
    PRESETS.to_vec()
}

/// (name, title, whether it has cables) of every input format of machines.
#[pyfunction]
pub fn machine_formats() -> Vec<(&'static str, &'static str, bool)> {
    read::FORMATS.iter().map(|row| (row.name, row.title, row.cables)).collect()
}

/// The output formats of machines.
#[pyfunction]
pub fn machine_writers() -> Vec<&'static str> {
    write::WRITERS.iter().map(|writer| writer.name).collect()
}

fn writer(name: &str) -> PyResult<&'static write::Writer> {
    write::Writer::named(name)
        .ok_or_else(|| bad_input(format!("no machine is written in a format {name:?}")))
}
