//! Builds a machine from labels of nodes: the switches above each node, its domain, and its resources.

use std::collections::{HashMap, HashSet};

use super::paths::{Way, check_parents, tree};
use super::yaml::Value;
use super::{MachineOptions, Read, UNNAMED};
use crate::description::{Description, DomainDescription};
use crate::error::{InputError, shown};
use crate::node_kind::NodeKind;
use crate::presets::NVLINK;

/// The NVLink domain of a node, as topograph writes it.
pub(crate) const DOMAIN: &str = "accelerator.topograph.run/domain";
/// A part of a domain, such as one of its racks.
pub(super) const SUB_DOMAIN: &str = "accelerator.topograph.run/sub-domain";
/// The switch N levels above a node, with N from 0.
pub(crate) const TIER: &str = "fabric.topograph.run/tier-";
/// The prefix of labels that topograph wrote until 2026.
const OLD: &str = "network.topology.nvidia.com/";
/// The old names of each tier, from the node up: the ones of 2025, then earlier ones.
const OLD_TIERS: [[&str; 2]; 3] = [["leaf", "block"], ["spine", "spine"], ["core", "datacenter"]];
/// The label of NVIDIA's GPU operator: UUID of the domain, a dot, number of the part.
const CLIQUE: &str = "nvidia.com/gpu.clique";

/// What the labels of a node say.
#[derive(Debug, Default)]
pub(super) struct Labelled {
    pub node: String,
    pub line: usize,
    /// The switches above it from the top down; empty if unknown.
    pub way: Vec<String>,
    pub domain: Option<String>,
    pub sub_domain: Option<String>,
    pub clique: Option<String>,
    /// Index of the node's kind.
    pub kind: u32,
}

impl Labelled {
    /// Reads the labels of a node. Empty values are ignored.
    pub fn of(node: &str, line: usize, labels: Option<&Value>) -> Result<Labelled, InputError> {
        let mut found = Labelled { node: node.to_owned(), line, ..Labelled::default() };
        let (mut tiers, mut old_tiers, mut old_domain) = (Vec::new(), Vec::new(), None);
        for (key, value) in labels.map_or(Ok(&[][..]), |labels| labels.map("labels"))? {
            if ![TIER, OLD, DOMAIN, SUB_DOMAIN, CLIQUE].iter().any(|known| key.starts_with(known)) {
                continue;
            }
            let text = value.text(key)?.to_owned();
            if text.is_empty() {
                continue;
            }
            let tier = key.strip_prefix(TIER).map(|tier| tier.parse::<u8>().map_err(|_| tier));
            let old = key.strip_prefix(OLD);
            let old_tier =
                old.and_then(|old| OLD_TIERS.iter().position(|tier| tier.contains(&old)));
            match (key.as_str(), tier, old_tier) {
                (DOMAIN, ..) => found.domain = Some(text),
                (SUB_DOMAIN, ..) => found.sub_domain = Some(text),
                (CLIQUE, ..) => found.clique = Some(text),
                (_, Some(Ok(tier)), _) => tiers.push((usize::from(tier), text)),
                (_, Some(Err(tier)), _) => {
                    let message = format!("label {} has no tier {}", shown(key), shown(tier));
                    return Err(value.refuse(message));
                }
                (_, _, Some(tier)) => old_tiers.push((tier, text)),
                _ if old == Some("accelerator") => old_domain = Some(text),
                _ => {}
            }
        }
        found.agree(&tiers, &old_tiers, old_domain.as_ref())?;
        found.domain = found.domain.or(old_domain);
        let mut tiers = if tiers.is_empty() { old_tiers } else { tiers };
        tiers.sort_by_key(|&(tier, _)| std::cmp::Reverse(tier));
        tiers.dedup_by_key(|&mut (tier, _)| tier);
        found.way = tiers.into_iter().map(|(_, switch)| switch).collect();
        Ok(found)
    }

    /// Refuses old labels that contradict the new ones.
    fn agree(
        &self,
        tiers: &[(usize, String)],
        old_tiers: &[(usize, String)],
        old_domain: Option<&String>,
    ) -> Result<(), InputError> {
        let pairs = old_tiers.iter().filter_map(|(tier, old)| {
            let new = tiers.iter().find(|(other, _)| other == tier);
            let other = old_tiers.iter().find(|(other, _)| other == tier);
            let (key, new) = match new {
                Some((_, new)) => (format!("{TIER}{tier}"), new),
                None => (format!("{OLD}{}", OLD_TIERS[*tier][1]), &other?.1),
            };
            Some((key, new, OLD_TIERS[*tier][0], old))
        });
        let domains = self.domain.as_ref().zip(old_domain);
        let domains = domains.map(|(new, old)| (DOMAIN.to_owned(), new, "accelerator", old));
        match pairs.chain(domains).find(|(_, new, _, old)| new != old) {
            Some((key, new, old_key, old)) => Err(InputError::at(
                self.line,
                format!(
                    "labels of node {} contradict each other: {key} is {}, {OLD}{old_key} is {}",
                    shown(&self.node),
                    shown(new),
                    shown(old)
                ),
            )),
            None => Ok(()),
        }
    }
}

/// How switches are identified.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SwitchNames {
    /// By name alone: each name is one switch.
    Unique,
    /// By name together with the names of the switches above.
    ByPath,
}

/// Returns the machine of the nodes. If no label names a switch, the domains become leaves under one root.
///
/// # Errors
/// With its line: a node that occurs twice, labels that contradict each other, no node with a label.
pub(super) fn machine_of(
    all: &[Labelled],
    kinds: Vec<NodeKind>,
    names: SwitchNames,
    options: &MachineOptions,
) -> Result<Read, InputError> {
    check_nodes(all)?;
    check_parts(all, "sub-domain", |node| node.sub_domain.as_deref())?;
    check_parts(all, "clique", |node| node.clique.as_deref())?;
    let domain = |node: &'_ Labelled| -> Option<String> {
        let of_domain = node.domain.as_ref().or(node.clique.as_ref());
        let of_part = node.sub_domain.as_ref().filter(|_| options.sub_domains);
        of_part.or(of_domain).cloned()
    };
    let domains: Vec<Option<String>> = all.iter().map(domain).collect();
    let has_ways = all.iter().any(|node| !node.way.is_empty());
    let (mut ways, mut skipped, mut of_no_domain) = (Vec::new(), Vec::new(), Vec::new());
    let mut sets = Sets::default();
    for (node, domain) in all.iter().zip(&domains) {
        let switches: Vec<&str> = match domain {
            Some(domain) if !has_ways => vec![domain],
            _ => node.way.iter().map(String::as_str).collect(),
        };
        if switches.is_empty() {
            skipped.push(node.node.as_str());
            continue;
        }
        match domain {
            Some(domain) => sets.add(domain, &node.node),
            None => of_no_domain.push(node.node.as_str()),
        }
        ways.push(Way { node: &node.node, switches, kind: node.kind, line: node.line });
    }
    if ways.is_empty() {
        let message = format!("no node has a label of a switch ({TIER}0) or a domain ({DOMAIN})");
        return Err(InputError::whole(message));
    }
    if names == SwitchNames::Unique {
        check_parents(&ways)?;
    }
    let what = if has_ways { "no label of a switch" } else { "no label of a domain" };
    let mut notes: Vec<String> =
        lacking_note(&skipped, &format!("{what}: skipped")).into_iter().collect();
    if !sets.domains.is_empty() {
        notes.extend(lacking_note(&of_no_domain, "no domain"));
    }
    let block_sizes = if options.sub_domains { sub_domain_sizes(all, &mut notes) } else { vec![] };
    let description = Description {
        name: UNNAMED.to_owned(),
        sites: vec![tree(&ways)?],
        wans: Vec::new(),
        kinds,
        domains: sets.domains,
        block_sizes,
        ..Description::default()
    };
    Ok(Read::with_notes(description, notes))
}

/// A sentence about nodes that lack something; `None` if there are none.
pub(super) fn lacking_note(nodes: &[&str], what: &str) -> Option<String> {
    match nodes {
        [] => None,
        [only] => Some(format!("node {} has {what}", shown(only))),
        [first, ..] => {
            Some(format!("{} nodes, such as {}, have {what}", nodes.len(), shown(first)))
        }
    }
}

/// Domains, in order of first mention.
#[derive(Default)]
struct Sets {
    domains: Vec<DomainDescription>,
    by_name: HashMap<String, usize>,
}

impl Sets {
    fn add(&mut self, domain: &str, node: &str) {
        let next = self.domains.len();
        let index = *self.by_name.entry(domain.to_owned()).or_insert(next);
        if index == next {
            let name = domain.to_owned();
            self.domains.push(DomainDescription { name, nodes: vec![], bandwidth: NVLINK });
        }
        self.domains[index].nodes.push(node.to_owned());
    }
}

fn check_nodes(all: &[Labelled]) -> Result<(), InputError> {
    let mut lines = HashMap::new();
    for node in all {
        if let Some(first) = lines.insert(&node.node, node.line) {
            let message = format!("node {} stands on line {first} already", shown(&node.node));
            return Err(InputError::at(node.line, message));
        }
    }
    Ok(())
}

/// Refuses a sub-domain that is in two domains.
fn check_parts<'a>(
    all: &'a [Labelled],
    what: &str,
    part: impl Fn(&'a Labelled) -> Option<&'a str>,
) -> Result<(), InputError> {
    let mut first_of: HashMap<&str, (&str, &Labelled)> = HashMap::new();
    for node in all {
        let (Some(part), Some(domain)) = (part(node), node.domain.as_deref()) else { continue };
        let (known, first) = *first_of.entry(part).or_insert((domain, node));
        if known != domain {
            return Err(InputError::at(
                node.line,
                format!(
                    "node {} says that {what} {} is in domain {}, node {} of line {} says in {}",
                    shown(&node.node),
                    shown(part),
                    shown(domain),
                    shown(&first.node),
                    first.line,
                    shown(known)
                ),
            ));
        }
    }
    Ok(())
}

/// The block sizes with sub-domains as base blocks and domains as larger blocks. Empty unless all domains have the same
/// number of sub-domains and Slurm could use the sizes.
fn sub_domain_sizes(all: &[Labelled], notes: &mut Vec<String>) -> Vec<u32> {
    let mut parts_of: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut sizes: HashMap<&str, u32> = HashMap::new();
    for node in all {
        if let (Some(domain), Some(part)) = (&node.domain, &node.sub_domain) {
            parts_of.entry(domain).or_default().insert(part);
            *sizes.entry(part).or_default() += 1;
        }
    }
    let most = parts_of.values().map(HashSet::len).max().unwrap_or_default() as u32;
    let fewest = parts_of.values().map(HashSet::len).min().unwrap_or_default() as u32;
    let Some(base) = sizes.into_values().max() else { return Vec::new() };
    if most == fewest && most.is_power_of_two() {
        return if most == 1 { vec![base] } else { vec![base, base * most] };
    }
    notes.push(format!(
        "domains have {fewest} to {most} sub-domains, not one power of two: domains are no blocks of sub-domains"
    ));
    vec![base]
}
