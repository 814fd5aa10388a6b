//! The communication graph of ranks: bytes between each pair, both directions added.

use topolane_traffic::Traffic;

/// An undirected weighted graph; neighbours are in ascending order.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    first: Vec<u32>,
    to: Vec<u32>,
    weight: Vec<f64>,
}

impl Graph {
    /// Returns the graph of `vertices` vertices with the weights of all `pairs` added up, without loops.
    pub(super) fn of(vertices: usize, pairs: impl IntoIterator<Item = (u32, u32, f64)>) -> Graph {
        let mut arcs: Vec<(u32, u32, f64)> = Vec::new();
        for (a, b, weight) in pairs {
            if a != b && weight > 0.0 {
                arcs.push((a, b, weight));
                arcs.push((b, a, weight));
            }
        }
        // A stable sort, so that weights are added up in the given order.
        arcs.sort_by_key(|&(a, b, _)| (a, b));
        let mut graph = Graph { first: vec![0; vertices + 1], ..Graph::default() };
        for arc in arcs.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)) {
            graph.first[arc[0].0 as usize + 1] += 1;
            graph.to.push(arc[0].1);
            graph.weight.push(arc.iter().map(|arc| arc.2).sum());
        }
        for vertex in 0..vertices {
            graph.first[vertex + 1] += graph.first[vertex];
        }
        graph
    }

    /// Returns the graph of bytes between the ranks of `traffic`, followed by vertices without edges. Weights are
    /// scaled if their sums could overflow or underflow.
    pub(super) fn of_traffic(traffic: &Traffic, vertices: usize) -> Graph {
        let most = traffic.entries().iter().fold(0.0, |most: f64, entry| most.max(entry.bytes));
        let unit = if (1e-100..1e100).contains(&most) || most == 0.0 { 1.0 } else { most };
        Graph::of(vertices, traffic.entries().iter().map(|e| (e.from, e.to, e.bytes / unit)))
    }

    pub(super) fn vertices(&self) -> usize {
        self.first.len() - 1
    }

    /// The neighbours of a vertex, with the weight of each edge.
    #[inline]
    pub(super) fn neighbours(&self, vertex: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let range = self.range(vertex);
        self.to[range.clone()].iter().copied().zip(self.weight[range].iter().copied())
    }

    /// The neighbours of a vertex.
    #[inline]
    pub(super) fn adjacent(&self, vertex: u32) -> &[u32] {
        &self.to[self.range(vertex)]
    }

    /// The weight between two vertices; 0 if there is no edge.
    #[inline]
    pub(super) fn between(&self, a: u32, b: u32) -> f64 {
        let range = self.range(a);
        match self.to[range.clone()].binary_search(&b) {
            Ok(index) => self.weight[range.start + index],
            Err(_) => 0.0,
        }
    }

    /// All edges, each once.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        (0..self.vertices() as u32)
            .flat_map(|a| self.neighbours(a).filter(move |n| a < n.0).map(move |(b, w)| (a, b, w)))
    }

    /// The sum of all edge weights.
    pub(super) fn total(&self) -> f64 {
        self.weight.iter().sum::<f64>() / 2.0
    }

    /// The subgraph of `vertices`, renumbered in their order.
    pub(super) fn induced(&self, vertices: &[u32]) -> Graph {
        let mut number = vec![u32::MAX; self.vertices()];
        for (index, &vertex) in vertices.iter().enumerate() {
            number[vertex as usize] = index as u32;
        }
        let mut part = Graph { first: vec![0], ..Graph::default() };
        let mut row: Vec<(u32, f64)> = Vec::new();
        for &vertex in vertices {
            row.clear();
            let inside = self.neighbours(vertex).map(|(to, w)| (number[to as usize], w));
            row.extend(inside.filter(|&(to, _)| to != u32::MAX));
            row.sort_by_key(|&(to, _)| to);
            part.to.extend(row.iter().map(|&(to, _)| to));
            part.weight.extend(row.iter().map(|&(_, weight)| weight));
            part.first.push(part.to.len() as u32);
        }
        part
    }

    /// The graph whose vertices are `groups` groups; `group` has the group of each vertex.
    pub(super) fn quotient(&self, group: &[u32], groups: usize) -> Graph {
        let named =
            |(a, b, weight): (u32, u32, f64)| (group[a as usize], group[b as usize], weight);
        Graph::of(groups, self.pairs().map(named))
    }

    #[inline]
    fn range(&self, vertex: u32) -> std::ops::Range<usize> {
        self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize
    }
}
