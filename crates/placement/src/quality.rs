//! Measures the quality of a placement: hops between its nodes, and the least possible value.

use std::collections::BTreeMap;

use topolane_fabric::{Dragonfly, Fabric, GroupIndex, NodeIndex, Wiring};

/// Hop measures of a set of nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Sum of hops over unordered pairs: the hop-bytes of one byte between every pair.
    pub pair_hops: f64,
    /// Average pairwise hops (APH) over ordered pairs of nodes (SC'18, section on metrics); 0 for one node.
    pub aph: f64,
}

impl Quality {
    /// Measures `nodes`, once per slot, in any order. O(depth x nodes).
    pub fn of(fabric: &Fabric, nodes: &[NodeIndex]) -> Self {
        let sorted;
        let nodes = if nodes.is_sorted() {
            nodes
        } else {
            let mut copy = nodes.to_vec();
            copy.sort_unstable();
            sorted = copy;
            &sorted
        };
        let n = nodes.len() as f64;
        let pair_hops = match fabric.wiring() {
            Wiring::Tree => tree_hops(fabric, nodes) - saved_in_domains(fabric, nodes),
            Wiring::Dragonfly(dragonfly) => dragonfly_hops(fabric, dragonfly, nodes),
            Wiring::Torus(torus) => {
                let router = |leaf| torus.router_of_leaf(leaf);
                grid_hops(fabric, nodes, router, |on| torus.pair_hops(on))
            }
            Wiring::HyperX(hyperx) => {
                let switch = |leaf| hyperx.switch_of_leaf(leaf);
                grid_hops(fabric, nodes, switch, |on| hyperx.pair_hops(on))
            }
        };
        let pairs = n * (n - 1.0) / 2.0;
        Quality { pair_hops, aph: if pairs > 0.0 { pair_hops / pairs } else { 0.0 } }
    }
}

/// The sum of hops over unordered pairs on a dragonfly: O(nodes + routers squared).
fn dragonfly_hops(fabric: &Fabric, dragonfly: &Dragonfly, nodes: &[NodeIndex]) -> f64 {
    let run =
        |run: &[NodeIndex]| (dragonfly.switch_of_leaf(fabric.group(1, run[0])), run.len() as f64);
    let of_leaf = nodes.chunk_by(|&a, &b| fabric.group(1, a) == fabric.group(1, b));
    let runs: Vec<(u32, f64)> = of_leaf.map(run).collect();
    let mut hops = 0.0;
    for (index, &(a, on_a)) in runs.iter().enumerate() {
        for &(b, on_b) in &runs[..index] {
            hops += f64::from(dragonfly.hops(a, b)) * on_a * on_b;
        }
    }
    let inside = in_domains(fabric, nodes).into_values().map(|nodes| {
        let switch = |node| dragonfly.switch_of_leaf(fabric.group(1, node));
        let mut hops = 0.0;
        for (index, &a) in nodes.iter().enumerate() {
            for &b in &nodes[..index] {
                hops += f64::from(dragonfly.hops(switch(a), switch(b)));
            }
        }
        hops
    });
    hops - inside.sum::<f64>()
}

/// The sum of hops over unordered pairs on a grid of switches, where `pair_hops` sums them for some nodes on each switch.
fn grid_hops(
    fabric: &Fabric,
    nodes: &[NodeIndex],
    switch_of_leaf: impl Fn(GroupIndex) -> u32,
    pair_hops: impl Fn(&[(u32, f64)]) -> f64,
) -> f64 {
    let hops = |nodes: &[NodeIndex]| {
        let of_leaf = nodes.chunk_by(|&a, &b| fabric.group(1, a) == fabric.group(1, b));
        let on_switch =
            |run: &[NodeIndex]| (switch_of_leaf(fabric.group(1, run[0])), run.len() as f64);
        pair_hops(&of_leaf.map(on_switch).collect::<Vec<_>>())
    };
    hops(nodes) - in_domains(fabric, nodes).into_values().map(|nodes| hops(&nodes)).sum::<f64>()
}

/// The nodes of each domain, which use its own network; none if every domain is on one leaf.
fn in_domains(fabric: &Fabric, nodes: &[NodeIndex]) -> BTreeMap<u32, Vec<NodeIndex>> {
    let mut by_domain: BTreeMap<u32, Vec<NodeIndex>> = BTreeMap::new();
    if fabric.domains_span_leaves() {
        for &node in nodes {
            if let Some(domain) = fabric.domain(node) {
                by_domain.entry(domain).or_default().push(node);
            }
        }
    }
    by_domain
}

/// The sum of tree hops over unordered pairs.
fn tree_hops(fabric: &Fabric, nodes: &[NodeIndex]) -> f64 {
    let n = nodes.len() as f64;
    let mut pair_hops = 0.0;
    for level in 1..fabric.depth() {
        // Nodes of a pair that lie in different groups here need one more link on each side, unless the level above is
        // padding.
        for run in nodes.chunk_by(|&a, &b| fabric.group(level, a) == fabric.group(level, b)) {
            let above = fabric.group(level + 1, run[0]);
            if !fabric.is_padding(level + 1, above) {
                pair_hops += run.len() as f64 * (n - run.len() as f64);
            }
        }
    }
    pair_hops + wan_hops(fabric, nodes)
}

/// The part of [`tree_hops`] between nodes of one domain, which do not use the tree. 0 if every domain is on one leaf.
fn saved_in_domains(fabric: &Fabric, nodes: &[NodeIndex]) -> f64 {
    in_domains(fabric, nodes).values().map(|nodes| tree_hops(fabric, nodes)).sum()
}

fn wan_hops(fabric: &Fabric, sorted: &[NodeIndex]) -> f64 {
    if fabric.sites() == 1 {
        return 0.0;
    }
    let top = fabric.depth();
    let sites: Vec<(u32, f64)> = sorted
        .chunk_by(|&a, &b| fabric.group(top, a) == fabric.group(top, b))
        .map(|run| (fabric.group(top, run[0]), run.len() as f64))
        .collect();
    let mut hops = 0.0;
    for (index, &(a, in_a)) in sites.iter().enumerate() {
        for &(b, in_b) in &sites[..index] {
            hops += fabric.site_hops(a, b).map_or(0.0, f64::from) * in_a * in_b;
        }
    }
    hops
}

/// The least APH of 1, 2, ... nodes on the empty machine: `least[n - 1]` for n nodes.
///
/// Filling the largest groups first is optimal on a tree whose groups are all of one size (the counts per group
/// majorise all others at every level); on an uneven tree it gives an upper bound. It is also an upper bound for jobs
/// larger than every domain, if domains span leaves; smaller jobs have 0 in a domain.
///
/// On other wirings it is a lower bound: nodes fill the largest routers, and all other pairs are one hop apart.
pub fn least_aph(fabric: &Fabric) -> Vec<f64> {
    let depth = fabric.depth();
    let is_tree = fabric.wiring().is_tree();
    let mut order = Vec::new();
    fill_order(fabric, depth, (0..fabric.sites()).collect(), &mut order);
    // If a node joins c nodes in its group of `level`, each of these c pairs saves one link on each side.
    let mut inside: Vec<Vec<f64>> =
        (0..=depth).map(|level| vec![0.0; fabric.groups(level) as usize]).collect();
    let of_domain = |domain| fabric.domain_nodes(domain).len();
    let in_domain = (0..fabric.domains()).map(of_domain).max().unwrap_or(0);
    let mut total = 0.0;
    let mut in_sites = vec![0.0; fabric.sites() as usize];
    let mut least = Vec::with_capacity(order.len());
    for (count, &node) in order.iter().enumerate() {
        for (level, inside) in inside.iter_mut().enumerate().take(depth).skip(1) {
            let group = fabric.group(level, node) as usize;
            if is_tree {
                total += 2.0 * (count as f64 - inside[group]);
            } else if level == 1 {
                total += count as f64 - inside[group];
            }
            inside[group] += 1.0;
        }
        let site = fabric.group(depth, node);
        for (other, &held) in in_sites.iter().enumerate() {
            total += fabric.site_hops(site, other as u32).map_or(0.0, f64::from) * held;
        }
        in_sites[site as usize] += 1.0;
        let pairs = count as f64 * (count as f64 + 1.0) / 2.0;
        let is_far = pairs > 0.0 && count >= in_domain;
        least.push(if is_far { total / pairs } else { 0.0 });
    }
    least
}

/// Appends the nodes of the groups of `level`, the largest groups first, and the same inside each group.
fn fill_order(fabric: &Fabric, level: usize, mut groups: Vec<u32>, order: &mut Vec<NodeIndex>) {
    groups.sort_by_key(|&group| std::cmp::Reverse(fabric.node_range(level, group).len()));
    for group in groups {
        if level == 1 {
            order.extend(fabric.node_range(1, group));
        } else {
            fill_order(fabric, level - 1, fabric.children(level, group).collect(), order);
        }
    }
}
