//! Sets of nodes that a faster network joins, such as NVLink domains.

use std::collections::HashMap;

use super::check::{check_name, positive};
use super::{Fabric, NodeIndex};
use crate::description::{Description, DomainDescription};
use crate::error::InputError;
use crate::error::shown;

/// A domain, numbered in the order of the description.
pub type DomainIndex = u32;

/// What a fabric knows of its domains.
#[derive(Debug, Clone, Default)]
pub(super) struct Domains {
    all: Vec<Domain>,
    /// The domain of each node, `u32::MAX` for none; empty on a machine without domains.
    of_node: Vec<DomainIndex>,
}

#[derive(Debug, Clone)]
struct Domain {
    name: String,
    /// Ascending.
    nodes: Vec<NodeIndex>,
    bandwidth: f64,
}

impl Domains {
    /// Checks the domains of a description whose nodes are laid out already.
    pub(super) fn of(
        description: &Description,
        node_by_name: &HashMap<String, NodeIndex>,
    ) -> Result<Domains, InputError> {
        let mut domains = Domains::default();
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
            domains.all.push(Domain {
                name: domain.name.clone(),
                nodes,
                bandwidth: domain.bandwidth,
            });
        }
        Ok(domains)
    }
}

impl Fabric {
    /// Number of domains; 0 on a machine without a network faster than its fabric.
    pub fn domains(&self) -> u32 {
        self.domains.all.len() as u32
    }

    /// The domain of a node, if it is in one.
    #[inline]
    pub fn domain(&self, node: NodeIndex) -> Option<DomainIndex> {
        self.domains.of_node.get(node as usize).copied().filter(|&domain| domain != u32::MAX)
    }

    /// The nodes of a domain, ascending. They need not lie side by side.
    #[inline]
    pub fn domain_nodes(&self, domain: DomainIndex) -> &[NodeIndex] {
        &self.domains.all[domain as usize].nodes
    }

    /// Name of a domain.
    pub fn domain_name(&self, domain: DomainIndex) -> &str {
        &self.domains.all[domain as usize].name
    }

    /// Bandwidth of a node inside of its domain in each direction, bytes per second.
    pub fn domain_bandwidth(&self, domain: DomainIndex) -> f64 {
        self.domains.all[domain as usize].bandwidth
    }

    /// The domains as a description has them.
    pub(super) fn describe_domains(&self) -> Vec<DomainDescription> {
        let describe = |domain: &Domain| DomainDescription {
            name: domain.name.clone(),
            nodes: domain.nodes.iter().map(|&node| self.node_name(node).to_owned()).collect(),
            bandwidth: domain.bandwidth,
        };
        self.domains.all.iter().map(describe).collect()
    }
}
