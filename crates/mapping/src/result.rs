//! The result of a mapping: the slot of every rank, checked, and its cost.

use std::collections::BTreeMap;

use topolane_fabric::{Fabric, NodeIndex};
use topolane_traffic::Traffic;

use super::Links;
use super::portfolio::FoundMapping;
use super::slots::PlacedSlots;

/// Bytes that cross a given number of links, before and after the mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossed {
    /// The number of links; `None` for bytes that stay inside a node.
    pub hops: Option<u32>,
    /// Bytes per iteration if rank i is on slot i.
    pub rank_order: f64,
    /// Bytes per iteration with the mapping.
    pub mapped: f64,
}

/// A slot for every rank; no slot is used twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// The slot of every rank.
    pub slots: Vec<u32>,
    /// Hop-bytes per iteration.
    pub hop_bytes: f64,
    /// Hop-bytes if rank i is on slot i.
    pub rank_order: f64,
    /// Bytes by number of links; bytes inside a node come first.
    pub crossed: Vec<Crossed>,
    /// The method that found the mapping.
    pub by: String,
    /// The hop-bytes of every method of the portfolio.
    pub members: Vec<(String, f64)>,
}

impl Mapping {
    /// Returns the best of the mappings found, or rank order if none is better.
    pub(super) fn best(
        fabric: &Fabric,
        nodes: &[NodeIndex],
        traffic: &Traffic,
        links: Links,
        slots: &PlacedSlots<'_>,
        found: Vec<FoundMapping>,
    ) -> Mapping {
        let costs = MappingCosts { fabric, nodes, traffic, links };
        let identity: Vec<u32> = (0..traffic.ranks()).collect();
        let rank_order = costs.of(&identity);
        let mut best = (rank_order, identity, "rank order, unchanged".to_owned());
        let mut members = Vec::with_capacity(found.len());
        for member in found {
            let mut mapped = slots.slots(&member.seats);
            mapped.truncate(traffic.ranks() as usize);
            // Drop a result that is not a valid mapping, whichever method found it.
            if !is_injective(&mapped, nodes.len()) {
                continue;
            }
            let cost = costs.of(&mapped);
            members.push((member.name.clone(), cost.0));
            if cost < best.0 {
                best = (cost, mapped, member.name);
            }
        }
        let (cost, slots, by) = best;
        let crossed = costs.crossed(&slots);
        Mapping { slots, hop_bytes: cost.0, rank_order: rank_order.0, crossed, by, members }
    }
}

/// Whether all slots exist and none is used twice.
fn is_injective(slots: &[u32], count: usize) -> bool {
    let mut taken = vec![false; count];
    slots.iter().all(|&slot| {
        taken.get_mut(slot as usize).is_some_and(|taken| !std::mem::replace(taken, true))
    })
}

/// Computes the cost of mappings from the traffic and the fabric alone.
struct MappingCosts<'a> {
    fabric: &'a Fabric,
    nodes: &'a [NodeIndex],
    traffic: &'a Traffic,
    links: Links,
}

impl MappingCosts<'_> {
    /// The hop-bytes, and the bytes between nodes to decide between equals.
    fn of(&self, slots: &[u32]) -> (f64, f64) {
        let mut cost = (0.0, 0.0);
        for (hops, bytes) in self.bytes(slots) {
            if let Some(hops) = hops {
                cost.0 += f64::from(hops) * bytes;
                cost.1 += bytes;
            }
        }
        cost
    }

    fn crossed(&self, slots: &[u32]) -> Vec<Crossed> {
        let identity: Vec<u32> = (0..slots.len() as u32).collect();
        let mut rows: BTreeMap<Option<u32>, Crossed> = BTreeMap::new();
        for (slots, is_mapped) in [(&*identity, false), (slots, true)] {
            for (hops, bytes) in self.bytes(slots) {
                let row =
                    rows.entry(hops).or_insert(Crossed { hops, rank_order: 0.0, mapped: 0.0 });
                *if is_mapped { &mut row.mapped } else { &mut row.rank_order } += bytes;
            }
        }
        rows.into_values().collect()
    }

    /// For every entry, its hops (`None` inside a node) and its bytes.
    fn bytes<'a>(&'a self, slots: &'a [u32]) -> impl Iterator<Item = (Option<u32>, f64)> + 'a {
        let node = |rank: u32| self.nodes[slots[rank as usize] as usize];
        self.traffic.entries().iter().map(move |entry| {
            let (from, to) = (node(entry.from), node(entry.to));
            // It was checked before that links connect all nodes.
            let hops = self.links.hops(self.fabric, from, to).unwrap_or_default();
            ((from != to).then_some(hops), entry.bytes)
        })
    }
}
