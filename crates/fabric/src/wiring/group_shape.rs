//! The switches of one group of a dragonfly: shortest ways between them.

use std::iter::successors;

/// A set of switches of one group: bit `n` is the `n`-th switch.
pub type SwitchSet = u128;

/// The most switches of a group.
pub(super) const MOST_SWITCHES_OF_GROUP: usize = SwitchSet::BITS as usize;

/// The bits of a set, ascending.
pub(super) fn bits(set: SwitchSet) -> impl Iterator<Item = usize> {
    successors(Some(set), |&left| Some(left & left.wrapping_sub(1)))
        .take_while(|&left| left != 0)
        .map(|left| left.trailing_zeros() as usize)
}

/// Which switches of a group have cables between them. Groups of one shape share it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GroupShape {
    /// For each switch, those that a cable joins to it.
    near: Vec<SwitchSet>,
    /// `distance[a * size + b]`: links on a shortest way.
    distance: Vec<u8>,
    /// `rings[k - 1][a]`: the switches at distance `k` of `a`.
    rings: Vec<Vec<SwitchSet>>,
    /// For each switch, its neighbours, and the switches to which a shortest way may begin with that neighbour.
    via: Vec<Vec<(usize, SwitchSet)>>,
    /// Whether every pair has a cable.
    is_complete: bool,
}

impl GroupShape {
    /// Returns the shape, given the neighbours of each switch; in case of error, two switches that no way joins.
    pub fn new(near: Vec<SwitchSet>) -> Result<Self, (usize, usize)> {
        let size = near.len();
        let mut distance = vec![0u8; size * size];
        let mut rings: Vec<Vec<SwitchSet>> = Vec::new();
        let all = SwitchSet::MAX.checked_shr(SwitchSet::BITS - size as u32).unwrap_or(0);
        for from in 0..size {
            let (mut seen, mut last, mut far) = (1 << from, 1 << from, 0usize);
            while seen != all {
                let next = bits(last).fold(0, |next, at| next | near[at]) & !seen;
                if next == 0 {
                    return Err((from, (all & !seen).trailing_zeros() as usize));
                }
                if rings.len() == far {
                    rings.push(vec![0; size]);
                }
                rings[far][from] = next;
                far += 1;
                bits(next).for_each(|to| distance[from * size + to] = far as u8);
                (seen, last) = (seen | next, next);
            }
        }
        let may_begin = |from: usize, neighbour: usize| {
            let further =
                |&to: &usize| distance[from * size + to] == distance[neighbour * size + to] + 1;
            (0..size).filter(further).fold(0, |set, to| set | 1 << to)
        };
        let via = (0..size)
            .map(|from| bits(near[from]).map(|at| (at, may_begin(from, at))).collect())
            .collect();
        let is_complete = rings.len() <= 1;
        Ok(GroupShape { near, distance, rings, via, is_complete })
    }

    pub fn size(&self) -> usize {
        self.near.len()
    }

    /// Links on a shortest way between two switches.
    pub fn distance(&self, a: usize, b: usize) -> u32 {
        u32::from(self.distance[a * self.size() + b])
    }

    /// The neighbours of a switch.
    pub fn near(&self, at: usize) -> SwitchSet {
        self.near[at]
    }

    /// The switches that are `gone` links from `from` and on a shortest way from there to `to`.
    fn layer(&self, from: usize, to: usize, gone: usize) -> SwitchSet {
        let ring = |at: usize, far: usize| if far == 0 { 1 << at } else { self.rings[far - 1][at] };
        ring(from, gone) & ring(to, self.distance(from, to) as usize - gone)
    }

    /// Calls `each` with every link on the shortest ways between two switches, and with the part of the traffic on it.
    /// A way carries in proportion to the product of the weights of its links: parallel cables count as ways of their own.
    pub fn divide(
        &self,
        from: usize,
        to: usize,
        weight: &dyn Fn(usize, usize) -> f64,
        each: &mut dyn FnMut(usize, usize, f64),
    ) {
        let whole = self.distance(from, to) as usize;
        if whole <= 1 {
            if whole == 1 {
                each(from, to, 1.0);
            }
            return;
        }
        let layers: Vec<SwitchSet> = (0..=whole).map(|gone| self.layer(from, to, gone)).collect();
        let mut there = vec![0.0; self.size()];
        let mut left = vec![0.0; self.size()];
        (there[from], left[to]) = (1.0, 1.0);
        for pair in layers.windows(2) {
            for at in bits(pair[0]) {
                for next in bits(pair[1] & self.near[at]) {
                    there[next] += there[at] * weight(at, next);
                }
            }
        }
        for pair in layers.windows(2).rev() {
            for at in bits(pair[0]) {
                for next in bits(pair[1] & self.near[at]) {
                    left[at] += weight(at, next) * left[next];
                }
            }
        }
        for pair in layers.windows(2) {
            for at in bits(pair[0]) {
                for next in bits(pair[1] & self.near[at]) {
                    each(at, next, there[at] * weight(at, next) * left[next] / there[to]);
                }
            }
        }
    }

    /// Adds to `links`, by switch, all links on all shortest ways from each of `from` to each of `to`.
    pub fn add_ways(&self, from: SwitchSet, to: SwitchSet, links: &mut [SwitchSet]) {
        if self.is_complete {
            bits(from).for_each(|at| links[at] |= to & !(1 << at));
            return;
        }
        // What is still to be reached from each switch. A shortest way from a switch does not depend on how it was
        // reached, so the ways from all sources are followed together.
        let mut wanted = vec![0; self.size()];
        bits(from).for_each(|at| wanted[at] = to & !(1 << at));
        for _ in 0..self.rings.len() {
            let mut next = vec![0; self.size()];
            for at in 0..self.size() {
                if wanted[at] == 0 {
                    continue;
                }
                for &(neighbour, via) in &self.via[at] {
                    let over = wanted[at] & via;
                    if over != 0 {
                        links[at] |= 1 << neighbour;
                        next[neighbour] |= over & !(1 << neighbour);
                    }
                }
            }
            wanted = next;
        }
    }

    /// For each switch, the switches to which all shortest ways avoid the links in `used`, which are given by switch.
    pub fn open(&self, used: &[SwitchSet]) -> Vec<SwitchSet> {
        if self.is_complete {
            return self.near.iter().zip(used).map(|(near, used)| near & !used).collect();
        }
        let mut blocked = vec![0; self.size()];
        for ring in &self.rings {
            let here: Vec<SwitchSet> = (0..self.size())
                .map(|at| {
                    let over = |found, &(neighbour, via): &(usize, SwitchSet)| {
                        let is_used = used[at] >> neighbour & 1 == 1;
                        found | via & if is_used { SwitchSet::MAX } else { blocked[neighbour] }
                    };
                    ring[at] & self.via[at].iter().fold(0, over)
                })
                .collect();
            blocked.iter_mut().zip(here).for_each(|(blocked, here)| *blocked |= here);
        }
        let open = |at: usize| self.rings.iter().fold(0, |all, ring| all | ring[at]) & !blocked[at];
        (0..self.size()).map(open).collect()
    }
}
