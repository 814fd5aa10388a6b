//! Which requests for parts of nodes with GPUs come, and how often: what policies that pack GPUs prepare for.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, NodeSet};

use crate::amounts::Amounts;
use crate::request::{Request, Share};

/// The most kinds of requests that are counted; further kinds do not count.
const MOST_KINDS: usize = 2048;

/// The kinds of requests with GPUs and how often each came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demand {
    kinds: Vec<DemandKind>,
    /// Nodes that the same kinds may use have the same number; empty if all kinds may use all nodes.
    sorts: Vec<u32>,
}

/// Requests of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct DemandKind {
    /// What each slot takes.
    pub amounts: Amounts,
    /// The nodes that they may use; `None` for all.
    pub eligible: Option<Arc<NodeSet>>,
    /// The part of all requests that are of this kind, up to 1.
    pub share: f64,
    /// Thousandths of GPUs that a slot takes.
    pub thousandths: u64,
}

impl Demand {
    /// The kinds, in the order in which they first came.
    pub fn kinds(&self) -> &[DemandKind] {
        &self.kinds
    }

    /// A number that nodes have in common which the same kinds may use.
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

/// Counts the requests that a scheduler sees. It does the same in a simulation and live.
#[derive(Debug, Clone, Default)]
pub struct SeenRequests {
    kinds: Vec<(Amounts, Option<Arc<NodeSet>>, u64)>,
    by_amounts: HashMap<Amounts, Vec<usize>>,
    total: u64,
    /// How many requests there must be before there is another [`Demand`].
    next: u64,
}

impl SeenRequests {
    /// Counts a request. Answers a new demand whenever there are a quarter more requests than at the last one, so that policies
    /// may remember what they reckoned for a while.
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
