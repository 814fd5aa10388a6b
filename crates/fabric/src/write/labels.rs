//! Writes node labels: for Kubernetes, as a Topology for Kueue, and as topograph's graph.

use std::fmt::Write;

use super::names::{NameLimits, Names};
use crate::fabric::Fabric;
use crate::ids::{GroupIndex, NodeIndex};
use crate::read::{DOMAIN, GPU, HOSTNAME, PRODUCT, TIER};

/// Returns the nodes with the labels that topograph writes (`fabric.topograph.run/tier-N`,
/// `accelerator.topograph.run/domain`) and their allocatable cores, memory and GPUs: a `List` in YAML for `kubectl
/// apply` or `kubectl create`.
pub fn kubernetes(fabric: &Fabric) -> String {
    kubernetes_named(fabric, &mut Names::new(NameLimits::KUBERNETES))
}

pub(super) fn kubernetes_named(fabric: &Fabric, taken: &mut Names) -> String {
    taken.begin(NameLimits::KUBERNETES);
    let nodes = taken.nodes(fabric);
    let names = LabelNames::of(fabric, taken);
    let mut text = "apiVersion: v1\nkind: List\nitems:\n".to_owned();
    for node in 0..fabric.nodes() {
        let name = &nodes[node as usize];
        let _ = write!(
            text,
            "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: \"{name}\"\n    labels:\n      {HOSTNAME}: \"{name}\"\n"
        );
        for (tier, switch) in names.tiers(fabric, node).iter().enumerate() {
            let _ = writeln!(text, "      {TIER}{tier}: \"{switch}\"");
        }
        if let Some(domain) = fabric.domain(node) {
            let _ = writeln!(text, "      {DOMAIN}: \"{}\"", names.domains[domain as usize]);
        }
        put_amounts(&mut text, fabric, node);
    }
    text
}

/// Writes the GPU type as a label, and the node status.
fn put_amounts(text: &mut String, fabric: &Fabric, node: NodeIndex) {
    let kind = fabric.kind(node);
    let gpus = kind.resources.iter().find(|(name, _)| *name == "gpu");
    let types: Vec<&str> =
        kind.resources.iter().filter_map(|(name, _)| name.strip_prefix("gpu:")).collect();
    let gpus = gpus.map_or_else(
        || kind.resources.iter().filter(|(name, _)| name.starts_with("gpu:")).map(|(_, n)| n).sum(),
        |(_, count)| count,
    );
    if let [product] = types[..] {
        let _ = writeln!(text, "      {PRODUCT}: \"{}\"", value_of(product));
    }
    text.push_str("  status:\n");
    for key in ["capacity", "allocatable"] {
        let (cores, memory) = (kind.cores(), kind.memory);
        let _ = write!(text, "    {key}: {{cpu: \"{cores}\", memory: \"{memory}\"");
        let _ = match gpus {
            0 => writeln!(text, "}}"),
            _ => writeln!(text, ", {GPU}: \"{gpus}\"}}"),
        };
    }
}

/// Returns a Kueue Topology over the labels of [`kubernetes`]: the tiers from the top down, the domain if it nests
/// between two of them, and the nodes.
pub fn kueue(fabric: &Fabric) -> String {
    let name = Names::new(NameLimits::KUBERNETES).unique("machine", fabric.name(), "");
    let mut text = format!(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata:\n  name: \"{name}\"\nspec:\n  levels:\n"
    );
    let domain = domain_level(fabric);
    for level in (1..=fabric.depth()).rev() {
        if domain == Some(level) {
            let _ = writeln!(text, "  - nodeLabel: {DOMAIN}");
        }
        let _ = writeln!(text, "  - nodeLabel: {TIER}{}", level - 1);
    }
    if domain == Some(0) {
        let _ = writeln!(text, "  - nodeLabel: {DOMAIN}");
    }
    let _ = writeln!(text, "  - nodeLabel: {HOSTNAME}");
    text
}

/// The highest level at which each group lies in one domain while each domain lies in one group of the level above.
/// `None` if domains do not nest in the tree, if some nodes are in none, or if branches have different numbers of
/// levels.
pub(super) fn domain_level(fabric: &Fabric) -> Option<usize> {
    let in_domains = (0..fabric.nodes()).all(|node| fabric.domain(node).is_some());
    if fabric.domains() == 0 || !in_domains || fabric.is_padded() {
        return None;
    }
    let groups_nest = |level: usize| {
        (0..fabric.groups(level)).all(|group| {
            let nodes = fabric.node_range(level, group);
            let first = fabric.domain(nodes.start);
            nodes.into_iter().all(|node| fabric.domain(node) == first)
        })
    };
    let domains_nest = |level: usize| {
        level > fabric.depth()
            || (0..fabric.domains()).all(|domain| {
                let nodes = fabric.domain_nodes(domain);
                let first = nodes.first().map(|&node| fabric.group(level, node));
                nodes.iter().all(|&node| Some(fabric.group(level, node)) == first)
            })
    };
    (0..=fabric.depth()).find(|&level| groups_nest(level) && domains_nest(level + 1))
}

/// Returns the machine as topograph's graph engine writes it: JSON with the switches above each node, from the node up,
/// and its domain.
pub fn topograph(fabric: &Fabric) -> String {
    topograph_named(fabric, &mut Names::new(NameLimits::TOML))
}

pub(super) fn topograph_named(fabric: &Fabric, taken: &mut Names) -> String {
    taken.begin(NameLimits::TOML);
    let nodes = taken.nodes(fabric);
    let names = LabelNames::of(fabric, taken);
    let mut text = "{\n  \"instances\": [".to_owned();
    for node in 0..fabric.nodes() {
        let comma = if node == 0 { "" } else { "," };
        let layers = names.tiers(fabric, node).join("\", \"");
        let _ = write!(
            text,
            "{comma}\n    {{\"id\": \"{}\", \"network_layers\": [\"{layers}\"]",
            nodes[node as usize]
        );
        if let Some(domain) = fabric.domain(node) {
            let domain = &names.domains[domain as usize];
            let _ = write!(text, ", \"labels\": {{\"{DOMAIN}\": \"{domain}\"}}");
        }
        text.push('}');
    }
    text.push_str("\n  ]\n}\n");
    text
}

/// The names of groups and domains as label values, without repetitions.
struct LabelNames {
    /// By level from 1, then by group.
    groups: Vec<Vec<String>>,
    domains: Vec<String>,
}

impl LabelNames {
    fn of(fabric: &Fabric, taken: &mut Names) -> LabelNames {
        taken.begin(NameLimits::LABEL);
        let mut groups = Vec::with_capacity(fabric.depth());
        for level in 1..=fabric.depth() {
            let of_level = (0..fabric.groups(level)).map(|group| {
                let site = fabric.site_of_group(level, group);
                let site = fabric.group_name(fabric.depth(), site);
                // Padding above the leaf of a short branch has no name of its own.
                if fabric.is_padding(level, group) {
                    return String::new();
                }
                taken.unique("switch", fabric.group_name(level, group), site)
            });
            groups.push(of_level.collect());
        }
        taken.begin(NameLimits::LABEL);
        let domains = (0..fabric.domains())
            .map(|domain| taken.unique("domain", fabric.domain_name(domain), "domain"))
            .collect();
        LabelNames { groups, domains }
    }

    /// The switches above a node, from its leaf up.
    fn tiers(&self, fabric: &Fabric, node: NodeIndex) -> Vec<&str> {
        let group = |level: usize| -> GroupIndex { fabric.group(level, node) };
        (1..=fabric.depth())
            .filter(|&level| !fabric.is_padding(level, group(level)))
            .map(|level| self.groups[level - 1][group(level) as usize].as_str())
            .collect()
    }
}

/// Converts a name to a label value.
fn value_of(name: &str) -> String {
    Names::new(NameLimits::LABEL).unique("label", name, "")
}
