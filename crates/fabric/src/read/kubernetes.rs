//! Reads Kubernetes nodes with their labels, and Kueue's Topology objects.

use super::labels::{Labelled, SwitchNames, TIER, lacking_note, machine_of};
use super::yaml::{Value, documents};
use super::{MachineOptions, Read};
use crate::error::{InputError, shown};
use crate::node_kind::NodeKind;
use crate::resources::{ResourceCounts, check_resource};

/// The lowest level of a Topology, which stands for single nodes.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
/// The resource names of GPUs.
const GPUS: [&str; 2] = [GPU, "amd.com/gpu"];
/// The resource name of NVIDIA GPUs.
pub(crate) const GPU: &str = "nvidia.com/gpu";
/// The label with the GPU type.
pub(crate) const PRODUCT: &str = "nvidia.com/gpu.product";
/// Keys whose values are skipped: they are not used and are most of the text.
const SKIPPED: [&str; 4] = ["annotations", "images", "managedFields", "addresses"];
/// The largest quantity: Kubernetes reduces larger ones to it.
const LARGEST: f64 = i64::MAX as f64;
/// The most characters of a quantity.
const LONGEST: usize = 64;
/// The beginning of taint keys that Kubernetes itself puts on nodes out of service.
const OWN_TAINTS: &str = "node.kubernetes.io/";

/// Reads the output of `kubectl get nodes -o json` (or `-o yaml`), with `topologies.kueue.x-k8s.io` if there are any.
///
/// Without a Topology, the tree follows the labels `fabric.topograph.run/tier-N`, or the older
/// `network.topology.nvidia.com/*`. With one (`options` choose among several), it follows the labels of its levels, and
/// nodes that lack one of them are skipped, as Kueue does. Domains are those of `accelerator.topograph.run/domain`, of
/// the older label, or of `nvidia.com/gpu.clique`. Cores, memory and GPUs are the allocatable amounts, rounded down:
/// 940m gives no core. Nodes that currently take no pods are included, and a note names them.
///
/// # Errors
/// With its line: input of another form, a node that occurs twice or has no name, an invalid quantity, labels that
/// contradict each other, several topologies without a choice, no node with a label.
pub fn kubernetes(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let documents = documents(text, &SKIPPED)?;
    let mut objects = Objects::default();
    for document in &documents {
        objects.add(document)?;
    }
    if objects.nodes.is_empty() {
        let Some((name, topology)) = objects.topologies.first() else {
            return Err(InputError::whole("there is no node"));
        };
        return Err(topology.refuse(format!(
            "Topology {} names labels, but there is no node: add the nodes (kubectl get nodes,topologies)",
            shown(name)
        )));
    }
    let levels = objects.levels(options)?;
    let mut kinds = NodeKinds::default();
    let (mut nodes, mut lacking) = (Vec::new(), Vec::new());
    let mut kept = IncludedNodes::default();
    for value in &objects.nodes {
        let (mut node, labels) = node_of(value)?;
        if let Some((topology, levels)) = &levels {
            let Some(way) = way_of(topology, levels, labels)? else {
                lacking.push(node.node);
                continue;
            };
            node.way = way;
        }
        node.kind = kinds.of(value, labels)?;
        kept.add(&node.node, value, kinds.all[node.kind as usize].cores())?;
        nodes.push(node);
    }
    if nodes.is_empty() {
        let level = levels.iter().flat_map(|(_, levels)| levels).next().copied().unwrap_or(TIER);
        return Err(InputError::whole(format!("no node has the label {}", shown(level))));
    }
    let names = if levels.is_some() { SwitchNames::ByPath } else { SwitchNames::Unique };
    let mut read = machine_of(&nodes, kinds.all, names, options)?;
    let lacking: Vec<&str> = lacking.iter().map(String::as_str).collect();
    if let Some((topology, levels)) = levels {
        let levels = levels.join(", ");
        read.notes.insert(0, format!("the tree is that of Topology {}: {levels}", shown(topology)));
        read.notes.extend(lacking_note(&lacking, "not all labels of the levels: skipped"));
    }
    read.notes.extend(kept.notes());
    if objects.others > 0 {
        read.notes.push(format!("{} objects that are no nodes are skipped", objects.others));
    }
    Ok(read)
}

/// The objects in the documents.
#[derive(Default)]
struct Objects<'a> {
    nodes: Vec<&'a Value>,
    /// Kueue's Topology objects by name.
    topologies: Vec<(&'a str, &'a Value)>,
    others: usize,
}

impl<'a> Objects<'a> {
    fn add(&mut self, object: &'a Value) -> Result<(), InputError> {
        let kind = object.get("kind").map_or(Ok(""), |kind| kind.text("kind"))?;
        match kind {
            "List" => {
                for item in object.get("items").map_or(Ok(&[][..]), |items| items.list("items"))? {
                    self.add(item)?;
                }
            }
            "NodeList" => {
                let items = object.get("items").map_or(Ok(&[][..]), |items| items.list("items"))?;
                self.nodes.extend(items);
            }
            "TopologyList" => {
                for item in object.get("items").map_or(Ok(&[][..]), |items| items.list("items"))? {
                    self.add_topology(item)?;
                }
            }
            "Node" => self.nodes.push(object),
            "Topology" => self.add_topology(object)?,
            "" => return Err(object.refuse("an object has no kind".to_owned())),
            _ => self.others += 1,
        }
        Ok(())
    }

    fn add_topology(&mut self, object: &'a Value) -> Result<(), InputError> {
        let name = name_of(object, "Topology")?;
        if let Some((_, first)) = self.topologies.iter().find(|(known, _)| *known == name) {
            let first = first.line;
            let message = format!("Topology {} stands on line {first} already", shown(name));
            return Err(object.refuse(message));
        }
        self.topologies.push((name, object));
        Ok(())
    }

    /// The name of the chosen topology and the labels of its levels, from the top down; `None` if there is no topology.
    fn levels(
        &self,
        options: &MachineOptions,
    ) -> Result<Option<(&'a str, Vec<&'a str>)>, InputError> {
        let names = || self.topologies.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let chosen = match (&options.topology, &self.topologies[..]) {
            (None, []) => return Ok(None),
            (None, [only]) => only,
            (None, [_, (_, second), ..]) => {
                let message = format!("several topologies ({}): --topology chooses", names());
                return Err(second.refuse(message));
            }
            (Some(name), all) => all.iter().find(|(known, _)| known == name).ok_or_else(|| {
                let message =
                    format!("there is no Topology {}; there are: {}", shown(name), names());
                InputError::whole(message)
            })?,
        };
        let (name, object) = *chosen;
        let what = format!("Topology {}", shown(name));
        let levels = object.get("spec").and_then(|spec| spec.get("levels"));
        let levels = levels.map_or(Ok(&[][..]), |levels| levels.list("levels"))?;
        let mut labels = Vec::with_capacity(levels.len());
        for level in levels {
            let label = level
                .get("nodeLabel")
                .ok_or_else(|| level.refuse(format!("a level of {what} has no nodeLabel")))?;
            let text = label.text("nodeLabel")?;
            if labels.contains(&text) {
                return Err(label.refuse(format!("{what} has level {} twice", shown(text))));
            }
            if labels.last() == Some(&HOSTNAME) {
                return Err(
                    label.refuse(format!("{what} has level {} below {HOSTNAME}", shown(text)))
                );
            }
            labels.push(text);
        }
        if labels.is_empty() {
            return Err(object.refuse(format!("{what} has no levels")));
        }
        Ok(Some((name, labels)))
    }
}

fn name_of<'a>(object: &'a Value, what: &str) -> Result<&'a str, InputError> {
    let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
    let name = name.ok_or_else(|| object.refuse(format!("a {what} has no metadata.name")))?;
    name.text("metadata.name")
}

fn node_of(value: &Value) -> Result<(Labelled, Option<&Value>), InputError> {
    let name = name_of(value, "node")?;
    let labels = value.get("metadata").and_then(|metadata| metadata.get("labels"));
    Ok((Labelled::of(name, value.line, labels)?, labels))
}

/// The values of the levels above a node; `None` if it lacks one. With no level above the hosts, all nodes are on one
/// switch with the topology's name.
fn way_of(
    topology: &str,
    levels: &[&str],
    labels: Option<&Value>,
) -> Result<Option<Vec<String>>, InputError> {
    let mut way = Vec::with_capacity(levels.len());
    for level in levels {
        let value = labels.and_then(|labels| labels.get(level));
        match value.map(|value| value.text(level)).transpose()? {
            _ if *level == HOSTNAME => {}
            None | Some("") => return Ok(None),
            Some(value) => way.push(value.to_owned()),
        }
    }
    if way.is_empty() {
        way.push(topology.to_owned());
    }
    Ok(Some(way))
}

/// The node kinds found so far.
#[derive(Default)]
struct NodeKinds {
    all: Vec<NodeKind>,
}

impl NodeKinds {
    /// The index of the kind of a node, by its allocatable amounts.
    fn of(&mut self, node: &Value, labels: Option<&Value>) -> Result<u32, InputError> {
        let status = node.get("status");
        let found = |key| status.and_then(|status| status.get(key));
        let amounts = found("allocatable").or(found("capacity"));
        let amount = |key: &str| {
            let value = amounts.and_then(|amounts| amounts.get(key));
            value.map(|value| quantity(value, key)).transpose()
        };
        let mut kind = NodeKind::default();
        // A number that is too large becomes the largest possible.
        if let Some(cores) = amount("cpu")? {
            (kind.sockets, kind.cores_per_socket) = (1, cores as u32);
        }
        if let Some(memory) = amount("memory")? {
            kind.memory = memory as u64;
        }
        let mut gpus: u32 = 0;
        for key in GPUS {
            let Some(value) = amounts.and_then(|amounts| amounts.get(key)) else { continue };
            let count = quantity(value, key)?;
            let whole = count.fract() == 0.0 && count <= f64::from(u32::MAX - gpus);
            if !whole {
                let text = shown(value.text(key)?);
                return Err(
                    value.refuse(format!("{key} of a node is {text}, not a number of GPUs"))
                );
            }
            gpus += count as u32;
        }
        if gpus > 0 {
            let product = labels.and_then(|labels| labels.get(PRODUCT));
            let product = product.map(|value| value.text(PRODUCT)).transpose()?;
            let of_type = product.map(|product| format!("gpu:{}", product.to_ascii_lowercase()));
            let of_type = of_type.filter(|name| check_resource(name).is_ok());
            let counts = std::iter::once("gpu".to_owned()).chain(of_type);
            kind.resources = counts.map(|name| (name, gpus)).collect::<ResourceCounts>();
        }
        let index = self.all.iter().position(|known| *known == kind).unwrap_or(self.all.len());
        if index == self.all.len() {
            self.all.push(kind);
        }
        Ok(index as u32)
    }
}

/// Parses a Kubernetes quantity: a number with a suffix (powers of 1000 or 1024) or an exponent. As in Kubernetes,
/// larger values than 2^63 - 1 become that value.
fn quantity(value: &Value, key: &str) -> Result<f64, InputError> {
    let text = value.text(key)?;
    let end = text.find(|letter: char| !letter.is_ascii_digit() && !"+-.".contains(letter));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let factor = match suffix {
        "" => Some(1.0),
        "n" => Some(1e-9),
        "u" => Some(1e-6),
        "m" => Some(1e-3),
        "k" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        "T" => Some(1e12),
        "P" => Some(1e15),
        "E" => Some(1e18),
        "Ki" => Some(1024.0),
        "Mi" => Some(1_048_576.0),
        "Gi" => Some(1_073_741_824.0),
        "Ti" => Some(1_099_511_627_776.0),
        "Pi" => Some(1_125_899_906_842_624.0),
        "Ei" => Some(1_152_921_504_606_846_976.0),
        _ => None,
    };
    let exponent = suffix.strip_prefix(['e', 'E']).and_then(|power| power.parse::<i32>().ok());
    let found = match (factor, exponent) {
        (Some(factor), _) => number.parse::<f64>().ok().map(|number| number * factor),
        (None, Some(power)) => format!("{number}e{power}").parse::<f64>().ok(),
        (None, None) => None,
    };
    match found.filter(|&found| found >= 0.0 && text.len() <= LONGEST) {
        Some(found) => Ok(found.min(LARGEST)),
        None => Err(value.refuse(format!("{key} of a node is {}, not a quantity", shown(text)))),
    }
}

/// The text value of a key; empty if the key is absent.
fn word<'a>(of: &'a Value, key: &str) -> Result<&'a str, InputError> {
    of.get(key).map_or(Ok(""), |value| value.text(key))
}

/// The list value of a key; empty if the key is absent.
fn rows<'a>(of: Option<&'a Value>, key: &str) -> Result<&'a [Value], InputError> {
    of.and_then(|of| of.get(key)).map_or(Ok(&[][..]), |found| found.list(key))
}

/// Nodes that are included although they take no pods now, or not all.
#[derive(Default)]
struct IncludedNodes {
    cordoned: Vec<String>,
    not_ready: Vec<String>,
    tainted: Vec<String>,
    without_core: Vec<String>,
}

impl IncludedNodes {
    /// Checks a node; `cores` is its number of whole allocatable cores.
    fn add(&mut self, name: &str, node: &Value, cores: u32) -> Result<(), InputError> {
        let spec = node.get("spec");
        if spec.map_or(Ok(""), |spec| word(spec, "unschedulable"))? == "true" {
            self.cordoned.push(name.to_owned());
        }
        for condition in rows(node.get("status"), "conditions")? {
            if word(condition, "type")? == "Ready" && word(condition, "status")? != "True" {
                self.not_ready.push(name.to_owned());
            }
        }
        let mut keeps_off = false;
        for taint in rows(spec, "taints")? {
            let holds = ["NoSchedule", "NoExecute"].contains(&word(taint, "effect")?);
            keeps_off |= holds && !word(taint, "key")?.starts_with(OWN_TAINTS);
        }
        if keeps_off {
            self.tainted.push(name.to_owned());
        }
        if cores == 0 {
            self.without_core.push(name.to_owned());
        }
        Ok(())
    }

    /// One sentence for each reason that applies.
    fn notes(&self) -> impl Iterator<Item = String> {
        [
            (&self.cordoned, "cordoned, and counted"),
            (&self.not_ready, "not Ready, and counted"),
            (&self.tainted, "tainted so that only pods that tolerate it come, and counted"),
            (
                &self.without_core,
                "without a whole core to give: a job that asks for cores has no place there",
            ),
        ]
        .into_iter()
        .filter_map(|(nodes, what)| match &nodes[..] {
            [] => None,
            [only] => Some(format!("node {} is {what}", shown(only))),
            [first, ..] => {
                Some(format!("{} nodes, such as {}, are {what}", nodes.len(), shown(first)))
            }
        })
    }
}
