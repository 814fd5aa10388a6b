//! Counts which requests for parts of GPU nodes arrive, and how often. Policies that pack GPUs prepare for these.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, NodeSet};

use crate::amounts::Amounts;
use crate::request::{Request, Share};

/// The most kinds that are counted; requests of further kinds are ignored.
const MOST_KINDS: usize = 2048;

/// The kinds of GPU requests, and how often each arrived.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demand {
    kinds: Vec<DemandKind>,
    /// A number per node: equal for nodes that the same kinds may use. Empty if all kinds may use all nodes.
    sorts: Vec<u32>,
}

/// All requests of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct DemandKind {
    /// What each slot takes.
    pub amounts: Amounts,
    /// The nodes that these requests may use; `None` for all.
    pub eligible: Option<Arc<NodeSet>>,
    /// The share of this kind in all requests, from 0 to 1.
    pub share: f64,
    /// Thousandths of GPUs that a slot takes.
    pub thousandths: u64,
}

impl Demand {
    /// The kinds in the order of their first request.
    pub fn kinds(&self) -> &[DemandKind] {
        &self.kinds
    }

    /// The number that the node shares with all nodes that the same kinds may use.
    pub(crate) fn sort_of(&self, node: NodeIndex) -> u32 {
        self.sorts.get(node as usize).copied().unwrap_or(0)
    }

    fn of(kinds: Vec<DemandKind>, nodes: u32) -> Self {
        let mut sets: Vec<&NodeSet> = Vec::new();
        for set in kinds.iter().filter_map(|kind| kind.eligible.as_deref()) {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        let mut numbers: HashMap<Vec<bool>, u32> = HashMap::new();
        let mut number = |node| {
            let key: Vec<bool> = sets.iter().map(|set| set.contains(node)).collect();
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        };
        let sorts =
            if sets.is_empty() { Vec::new() } else { (0..nodes).map(&mut number).collect() };
        Demand { kinds, sorts }
    }
}

/// Counts the requests that a scheduler receives, in a simulation and live alike.
#[derive(Debug, Clone, Default)]
pub struct SeenRequests {
    kinds: Vec<(Amounts, Option<Arc<NodeSet>>, u64)>,
    by_amounts: HashMap<Amounts, Vec<usize>>,
    total: u64,
    /// The number of requests at which the next [`Demand`] is made.
    next: u64,
}

impl SeenRequests {
    /// Counts a request. Returns a new demand each time the number of requests has grown by a quarter, so policies can
    /// keep what they computed in between.
    pub fn note(&mut self, request: &Request, fabric: &Fabric) -> Option<Arc<Demand>> {
        let Share::Part(amounts) = &request.share else { return None };
        if amounts.gpu_thousandths(fabric.resources()) == 0 {
            return None;
        }
        self.count(amounts, request.eligible.as_ref());
        if self.total < self.next {
            return None;
        }
        self.next = self.total + self.total.div_ceil(4);
        let kind = |(amounts, eligible, count): &(Amounts, Option<Arc<NodeSet>>, u64)| DemandKind {
            amounts: amounts.clone(),
            eligible: eligible.clone(),
            share: *count as f64 / self.total as f64,
            thousandths: amounts.gpu_thousandths(fabric.resources()),
        };
        Some(Arc::new(Demand::of(self.kinds.iter().map(kind).collect(), fabric.nodes())))
    }

    fn count(&mut self, amounts: &Amounts, eligible: Option<&Arc<NodeSet>>) {
        let indices = self.by_amounts.entry(amounts.clone()).or_default();
        let same = |&&index: &&usize| self.kinds[index].1.as_ref() == eligible;
        if let Some(&index) = indices.iter().find(same) {
            self.kinds[index].2 += 1;
        } else if self.kinds.len() < MOST_KINDS {
            indices.push(self.kinds.len());
            self.kinds.push((amounts.clone(), eligible.cloned(), 1));
        } else {
            return;
        }
        self.total += 1;
    }
}
