//! Multilevel bisection (Karypis & Kumar 1998). The graph is made coarser along its heaviest edges, and the coarsest
//! graph is cut in two. On the way back the cut is refined in each finer graph (Fiduccia & Mattheyses 1982).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::graph::Graph;

/// A graph of at most this many vertices is not made coarser.
const COARSEST: usize = 60;

/// The number of cuts of the coarsest graph, each of which grows from another vertex.
const STARTS: usize = 8;

/// The most passes of the refinement of one graph.
const PASSES: usize = 8;

/// Cuts a graph in two, with exactly `first` vertices on the first side. Returns `true` for these vertices, by the best
/// of `cuts` cuts.
pub(super) fn bisect(graph: &Graph, first: u32, cuts: u32, draw: &mut ChaCha8Rng) -> Vec<bool> {
    let all = Sized { graph, sizes: vec![1; graph.vertices()], first };
    best((0..cuts.max(1)).map(|_| all.cut(draw)))
}

/// The sides of the cut with the least weight; of equal cuts, the first.
fn best(cuts: impl Iterator<Item = GraphCut>) -> Vec<bool> {
    cuts.min_by(GraphCut::compare).map(|cut| cut.sides).unwrap_or_default()
}

/// A graph whose vertices each stand for several vertices of a finer graph.
struct Sized<'a> {
    graph: &'a Graph,
    /// For each vertex, the number of vertices of the finest graph that it stands for.
    sizes: Vec<u32>,
    /// The size that the first side must have.
    first: u32,
}

/// A cut: the two sides of a graph.
struct GraphCut {
    /// For each vertex, whether it is on the first side.
    sides: Vec<bool>,
    /// How much further the sides' sizes are off than is allowed.
    excess: u32,
    /// The weight between the sides.
    weight: f64,
}

impl GraphCut {
    fn compare(&self, other: &GraphCut) -> Ordering {
        self.excess.cmp(&other.excess).then(self.weight.total_cmp(&other.weight))
    }
}

impl Sized<'_> {
    fn cut(&self, draw: &mut ChaCha8Rng) -> GraphCut {
        let Some(coarse_of) = self.matching(draw) else {
            return self.cut_from_vertices(draw);
        };
        let vertices = coarse_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut sizes = vec![0; vertices];
        for (&coarse, size) in coarse_of.iter().zip(&self.sizes) {
            sizes[coarse as usize] += size;
        }
        let graph = self.graph.quotient(&coarse_of, vertices);
        let sides = Sized { graph: &graph, sizes, first: self.first }.cut(draw).sides;
        self.refined(coarse_of.iter().map(|&coarse| sides[coarse as usize]).collect())
    }

    /// For every vertex, the vertex of the next coarser graph. `None` if the graph is coarse enough or hardly any
    /// vertices can be paired.
    fn matching(&self, draw: &mut ChaCha8Rng) -> Option<Vec<u32>> {
        let vertices = self.graph.vertices();
        if vertices <= COARSEST {
            return None;
        }
        let mate = self.mates(draw);
        let mut coarse_of: Vec<u32> = Vec::with_capacity(vertices);
        let mut coarse = 0;
        for (vertex, mate) in mate.into_iter().enumerate() {
            match mate {
                Some(before) if (before as usize) < vertex => {
                    coarse_of.push(coarse_of[before as usize]);
                }
                _ => {
                    coarse_of.push(coarse);
                    coarse += 1;
                }
            }
        }
        (coarse as usize * 20 <= vertices * 19).then_some(coarse_of)
    }

    /// Pairs vertices along the heaviest edges, then pairs those that remain.
    fn mates(&self, draw: &mut ChaCha8Rng) -> Vec<Option<u32>> {
        // Larger vertices would leave too few ways to balance the sides.
        let most = (self.sizes.iter().sum::<u32>() * 3 / (2 * COARSEST as u32)).max(2);
        let fits = |a: u32, b: u32| self.sizes[a as usize] + self.sizes[b as usize] <= most;
        let mut order: Vec<u32> = (0..self.graph.vertices() as u32).collect();
        order.shuffle(draw);
        let mut mate: Vec<Option<u32>> = vec![None; order.len()];
        for &vertex in &order {
            if mate[vertex as usize].is_none() {
                let free = |other: u32| mate[other as usize].is_none() && fits(vertex, other);
                if let Some(other) = self.nearest(vertex, free) {
                    mate[vertex as usize] = Some(other);
                    mate[other as usize] = Some(vertex);
                }
            }
        }
        // The vertices around a hub find no free neighbour, so two with the same nearest vertex are paired.
        order.retain(|&vertex| mate[vertex as usize].is_none());
        let mut alone: Vec<(Option<u32>, u32)> =
            order.iter().map(|&vertex| (self.nearest(vertex, |_| true), vertex)).collect();
        alone.sort_by_key(|&(nearest, _)| nearest);
        for around in alone.chunk_by(|a, b| a.0 == b.0) {
            for pair in around.chunks_exact(2).filter(|pair| fits(pair[0].1, pair[1].1)) {
                mate[pair[0].1 as usize] = Some(pair[1].1);
                mate[pair[1].1 as usize] = Some(pair[0].1);
            }
        }
        mate
    }

    /// The neighbour with the heaviest edge, of those that `may` allows.
    fn nearest(&self, vertex: u32, may: impl Fn(u32) -> bool) -> Option<u32> {
        let near = self.graph.neighbours(vertex).filter(|&(other, _)| may(other));
        near.min_by(|a, b| b.1.total_cmp(&a.1)).map(|(other, _)| other)
    }

    /// The best of several cuts, each grown from one vertex: the refinement moves vertices to its side until the sides
    /// have their sizes.
    fn cut_from_vertices(&self, draw: &mut ChaCha8Rng) -> GraphCut {
        let vertices = self.graph.vertices();
        let cuts = (0..STARTS.min(vertices).max(1)).map(|_| {
            let mut sides = vec![false; vertices];
            if vertices > 0 {
                sides[draw.random_range(0..vertices)] = true;
            }
            self.refined(sides)
        });
        let sides = best(cuts);
        self.measured(sides)
    }

    /// Refines a cut by passes of moves, as long as they improve it.
    fn refined(&self, sides: Vec<bool>) -> GraphCut {
        let mut cut = self.measured(sides);
        for _ in 0..PASSES {
            if !RefinementPass::new(self, &cut).run(&mut cut) {
                break;
            }
        }
        cut
    }

    fn measured(&self, sides: Vec<bool>) -> GraphCut {
        let crossing =
            self.graph.pairs().filter(|&(a, b, _)| sides[a as usize] != sides[b as usize]);
        let weight = crossing.map(|(_, _, weight)| weight).sum();
        let size = self.sizes.iter().zip(&sides).filter(|&(_, &side)| side).map(|(size, _)| size);
        let off = i64::from(size.sum::<u32>()) - i64::from(self.first);
        GraphCut { sides, excess: self.excess(off), weight }
    }

    /// How much further the size of the first side is off than is allowed. Less than the largest vertex is allowed, so
    /// nothing in the finest graph, where all vertices have size 1.
    fn excess(&self, off: i64) -> u32 {
        let largest = self.sizes.iter().max().copied().unwrap_or(1);
        (off.unsigned_abs() as u32).saturating_sub(largest - 1)
    }
}

/// The gain of moving a vertex to the other side.
#[derive(PartialEq)]
struct Gain(f64);

impl Eq for Gain {}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Gain) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Gain {
    fn cmp(&self, other: &Gain) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// One pass of Fiduccia and Mattheyses: every vertex moves at most once, even at a loss, and the best state on the way
/// is kept.
struct RefinementPass<'a> {
    of: &'a Sized<'a>,
    gain: Vec<f64>,
    moved: Vec<bool>,
    /// For each side, its vertices by gain. An entry whose gain is no longer that of its vertex is ignored.
    queues: [BinaryHeap<(Gain, Reverse<u32>)>; 2],
    /// The size of the first side minus the size that it must have.
    off: i64,
}

impl<'a> RefinementPass<'a> {
    fn new(of: &'a Sized<'a>, cut: &GraphCut) -> RefinementPass<'a> {
        let vertices = of.graph.vertices();
        let mut queues = [BinaryHeap::new(), BinaryHeap::new()];
        let mut gain = vec![0.0; vertices];
        let mut off = -i64::from(of.first);
        for (vertex, &side) in cut.sides.iter().enumerate() {
            let signed = of.graph.neighbours(vertex as u32).map(|(other, weight)| {
                if cut.sides[other as usize] == side { -weight } else { weight }
            });
            gain[vertex] = signed.sum();
            queues[usize::from(side)].push((Gain(gain[vertex]), Reverse(vertex as u32)));
            off += if side { i64::from(of.sizes[vertex]) } else { 0 };
        }
        RefinementPass { of, gain, moved: vec![false; vertices], queues, off }
    }

    /// Runs the pass and returns whether it improved the cut.
    fn run(mut self, cut: &mut GraphCut) -> bool {
        let patience = (self.moved.len() / 50).clamp(30, 200);
        let (mut excess, mut weight) = (cut.excess, cut.weight);
        let mut moves = Vec::new();
        let mut kept = 0;
        while excess > 0 || moves.len() < kept + patience {
            let Some(vertex) = self.next() else { break };
            weight -= self.gain[vertex as usize];
            self.shift(vertex, &mut cut.sides);
            moves.push(vertex);
            excess = self.of.excess(self.off);
            if (excess, weight) < (cut.excess, cut.weight) {
                (cut.excess, cut.weight) = (excess, weight);
                kept = moves.len();
            }
        }
        for &vertex in &moves[kept..] {
            cut.sides[vertex as usize] ^= true;
        }
        kept > 0
    }

    /// The vertex to move next: from the side that is too large, otherwise the one with the largest gain.
    fn next(&mut self) -> Option<u32> {
        for queue in &mut self.queues {
            while let Some((gain, Reverse(vertex))) = queue.peek() {
                let vertex = *vertex as usize;
                if !self.moved[vertex] && gain.0.total_cmp(&self.gain[vertex]).is_eq() {
                    break;
                }
                queue.pop();
            }
        }
        let first_is_better = self.queues[1].peek() > self.queues[0].peek();
        let from_first = match self.of.excess(self.off) {
            0 => first_is_better,
            _ => self.off > 0,
        };
        self.queues[usize::from(from_first)].pop().map(|(_, Reverse(vertex))| vertex)
    }

    fn shift(&mut self, vertex: u32, sides: &mut [bool]) {
        let size = i64::from(self.of.sizes[vertex as usize]);
        let side = !sides[vertex as usize];
        sides[vertex as usize] = side;
        self.moved[vertex as usize] = true;
        self.off += if side { size } else { -size };
        for (other, weight) in self.of.graph.neighbours(vertex) {
            let index = other as usize;
            if !self.moved[index] {
                self.gain[index] += if sides[index] == side { -2.0 * weight } else { 2.0 * weight };
                self.queues[usize::from(sides[index])]
                    .push((Gain(self.gain[index]), Reverse(other)));
            }
        }
    }
}
