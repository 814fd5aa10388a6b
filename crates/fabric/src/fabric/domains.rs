//! Domains: sets of nodes that a faster network connects, such as NVLink domains.

use std::collections::HashMap;

use super::Fabric;
use crate::check::{check_name, positive};
use crate::description::{Description, DomainDescription};
use crate::error::InputError;
use crate::error::shown;
use crate::ids::NodeIndex;

/// A domain, numbered in the order of the description.
pub type DomainIndex = u32;

/// The domains of a fabric.
#[derive(Debug, Clone, Default)]
pub(super) struct Domains {
    all: Vec<DomainNodes>,
    /// The domain of each node, `u32::MAX` for none; empty on a machine without domains.
    of_node: Vec<DomainIndex>,
    /// The configured block sizes, ascending; empty if there are none.
    block_sizes: Vec<u32>,
    /// Whether any domain has nodes on several leaves.
    pub(super) span_leaves: bool,
    /// The lowest level whose groups consist of whole domains, if domains nest in the tree.
    pub(super) level_above: Option<usize>,
    /// The level whose groups are exactly the domains, if there is one.
    pub(super) level_of: Option<usize>,
}

#[derive(Debug, Clone)]
struct DomainNodes {
    name: String,
    /// The nodes of the domain, ascending.
    nodes: Vec<NodeIndex>,
    bandwidth: f64,
}

impl Domains {
    /// Whether there are no domains.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The nodes of each domain; never empty.
    pub(super) fn sets(&self) -> impl Iterator<Item = &[NodeIndex]> {
        self.all.iter().map(|domain| &*domain.nodes)
    }

    /// Checks the domains of a description, whose nodes already have numbers.
    pub(super) fn of(
        description: &Description,
        node_by_name: &HashMap<String, NodeIndex>,
    ) -> Result<Domains, InputError> {
        check_block_sizes(description)?;
        let mut domains =
            Domains { block_sizes: description.block_sizes.clone(), ..Domains::default() };
        let mut names = HashMap::new();
        for (index, domain) in description.domains.iter().enumerate() {
            check_name("domain", &domain.name)?;
            let refuse = |what: String| {
                Err(InputError::whole(format!("domain {} {what}", shown(&domain.name))))
            };
            if names.insert(&domain.name, index).is_some() {
                return refuse("stands in two places".to_owned());
            }
            if domain.nodes.is_empty() {
                return refuse("has no nodes".to_owned());
            }
            if !positive(domain.bandwidth) {
                return refuse(format!("needs a bandwidth above 0, not {} B/s", domain.bandwidth));
            }
            domains.of_node.resize(node_by_name.len(), u32::MAX);
            let mut nodes = Vec::with_capacity(domain.nodes.len());
            for name in &domain.nodes {
                let Some(&node) = node_by_name.get(name) else {
                    return refuse(format!("names node {}, which is not there", shown(name)));
                };
                let of = &mut domains.of_node[node as usize];
                if *of != u32::MAX {
                    let other = description.domains.get(*of as usize).map_or("", |d| &d.name);
                    return refuse(format!(
                        "names node {}, which is in domain {} already",
                        shown(name),
                        shown(other)
                    ));
                }
                *of = index as DomainIndex;
                nodes.push(node);
            }
            nodes.sort_unstable();
            domains.all.push(DomainNodes {
                name: domain.name.clone(),
                nodes,
                bandwidth: domain.bandwidth,
            });
        }
        Ok(domains)
    }
}

/// The largest multiple of the base block: Slurm's topology/block has 16 levels.
const LARGEST_MULTIPLE: u32 = 1 << 15;

fn check_block_sizes(description: &Description) -> Result<(), InputError> {
    check_sizes(&description.block_sizes).map_err(InputError::whole)?;
    match description.block_sizes.first() {
        Some(base) if description.domains.is_empty() => {
            Err(InputError::whole(format!("block size {base} is given, but there is no domain")))
        }
        _ => Ok(()),
    }
}

/// Checks that Slurm's topology/block accepts the sizes: ascending, the base block first, then power-of-two multiples
/// of it.
pub(crate) fn check_sizes(sizes: &[u32]) -> Result<(), String> {
    let Some(&base) = sizes.first() else { return Ok(()) };
    if base == 0 {
        return Err("block size 0 is not above 0".to_owned());
    }
    if let Some((last, next)) = sizes.iter().zip(&sizes[1..]).find(|(last, next)| last >= next) {
        return Err(format!("block size {next} does not follow {last} in ascending order"));
    }
    let is_multiple = |size: u32| {
        size.is_multiple_of(base)
            && (size / base).is_power_of_two()
            && size / base <= LARGEST_MULTIPLE
    };
    match sizes.iter().find(|&&size| !is_multiple(size)) {
        Some(size) => Err(format!(
            "block size {size} is not the base block of {base} nodes times a power of two up to {LARGEST_MULTIPLE}"
        )),
        None => Ok(()),
    }
}

impl Fabric {
    /// Block sizes that a scheduler uses (`BlockSizes` of Slurm's topology/block), in nodes and ascending: the base
    /// block, then power-of-two multiples of it. Empty if none are configured; Slurm then takes the size of the first
    /// block times 1, 2, 4, 8 and 16. A domain may have more nodes than the base block.
    pub fn block_sizes(&self) -> &[u32] {
        &self.domains.block_sizes
    }

    /// The number of domains; 0 on a machine without a network faster than its fabric.
    pub fn domains(&self) -> u32 {
        self.domains.all.len() as u32
    }

    /// The domain of a node; `None` if it is in none.
    #[inline]
    pub fn domain(&self, node: NodeIndex) -> Option<DomainIndex> {
        self.domains.of_node.get(node as usize).copied().filter(|&domain| domain != u32::MAX)
    }

    /// Whether two nodes are in one domain, so that their messages use no link of the tree. Costs nothing on a machine
    /// without domains.
    #[inline]
    pub fn share_domain(&self, a: NodeIndex, b: NodeIndex) -> bool {
        !self.domains.of_node.is_empty()
            && self.domain(a).is_some()
            && self.domain(a) == self.domain(b)
    }

    /// Whether all of these nodes are in one domain, and so use no link of the tree.
    pub fn lie_in_one_domain(&self, nodes: &[NodeIndex]) -> bool {
        let Some(&first) = nodes.first().filter(|_| !self.domains.of_node.is_empty()) else {
            return false;
        };
        nodes.iter().all(|&node| self.share_domain(first, node))
    }

    /// Whether any domain has nodes on several leaves. If not, a job in one domain never crosses a leaf.
    pub fn domains_span_leaves(&self) -> bool {
        self.domains.span_leaves
    }

    /// The nodes of a domain, ascending. They need not be consecutive.
    #[inline]
    pub fn domain_nodes(&self, domain: DomainIndex) -> &[NodeIndex] {
        &self.domains.all[domain as usize].nodes
    }

    /// Name of a domain.
    pub fn domain_name(&self, domain: DomainIndex) -> &str {
        &self.domains.all[domain as usize].name
    }

    /// Bandwidth of each node inside its domain, in each direction, in bytes per second.
    pub fn domain_bandwidth(&self, domain: DomainIndex) -> f64 {
        self.domains.all[domain as usize].bandwidth
    }

    /// Returns the domains in the form of a description.
    pub(super) fn describe_domains(&self) -> Vec<DomainDescription> {
        let describe = |domain: &DomainNodes| DomainDescription {
            name: domain.name.clone(),
            nodes: domain.nodes.iter().map(|&node| self.node_name(node).to_owned()).collect(),
            bandwidth: domain.bandwidth,
        };
        self.domains.all.iter().map(describe).collect()
    }
}
