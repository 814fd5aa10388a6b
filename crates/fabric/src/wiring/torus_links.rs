//! The links of a torus that a set of nodes may use.

use std::ops::Range;

use super::group_shape::bits;
use super::link_set::{LinkSet, united};
use super::torus::Torus;

/// Bits of routers, in words that are made when they are needed.
#[derive(Default)]
struct Bits(Vec<(u32, u64)>);

impl Bits {
    fn set(&mut self, first: u32, router: u32) {
        let (word, bit) = (first + router / u64::BITS, 1 << (router % u64::BITS));
        match self.0.last_mut() {
            Some((last, bits)) if *last == word => *bits |= bit,
            _ => self.0.push((word, bit)),
        }
    }

    fn into_links(self) -> LinkSet {
        LinkSet::of_any(self.0)
    }
}

impl Torus {
    /// The words of one plane of a set of links.
    pub fn words_of_plane(&self) -> u32 {
        self.routers().div_ceil(u64::BITS)
    }

    /// The first words of both planes of a dimension: a router and the next, a bit for each direction.
    pub fn planes_of(&self, dimension: usize) -> [u32; 2] {
        let first = 2 * dimension as u32 * self.words_of_plane();
        [first, first + self.words_of_plane()]
    }

    /// The first words of the planes of the optical ports of a dimension of the grid of a pod: of the low face of each
    /// cube, and of the high face.
    pub fn planes_of_ports(&self, dimension: usize) -> [u32; 2] {
        let links = 2 * self.sizes.len() as u32 * self.words_of_plane();
        let first = links + 2 * (dimension as u32 - 1) * self.words_of_plane();
        [first, first + self.words_of_plane()]
    }

    /// The number of words over which the links are spread.
    pub(super) fn link_words(&self) -> u32 {
        let dimensions = self.sizes.len() as u32;
        let planes = 2 * dimensions + if self.is_pod() { 2 * (dimensions - 1) } else { 0 };
        planes * self.words_of_plane()
    }

    /// The number of directed cables in a set of links, without those of optical switches.
    pub(super) fn cables_in(&self, links: &LinkSet) -> u32 {
        let end = 2 * self.sizes.len() as u32 * self.words_of_plane();
        let cables = links.words().iter().filter(|&&(word, _)| word < end);
        cables.map(|&(_, bits)| bits.count_ones()).sum()
    }

    /// All links that a job on these routers may use.
    ///
    /// In a pod, a job in one cube uses only cables of the cube. A job in several cubes has a box of routers in each, with
    /// all its cables, and the switches join the boxes to a chain or to rings: see docs/explanation/wirings.md.
    pub fn links_of(&self, routers: impl Iterator<Item = u32>) -> LinkSet {
        self.links_over(routers, Self::links_of_cubes)
    }

    /// All links that jobs on some of these routers may use, whichever. In a pod, a job in several cubes may use more links than
    /// one that has more routers in them: it may have no chain of boxes.
    pub(super) fn links_of_any(&self, routers: impl Iterator<Item = u32>) -> LinkSet {
        self.links_over(routers, Self::links_of_whole_cubes)
    }

    fn links_over(
        &self,
        routers: impl Iterator<Item = u32>,
        over_cubes: fn(&Torus, &[u32]) -> LinkSet,
    ) -> LinkSet {
        let mut routers: Vec<u32> = routers.collect();
        routers.sort_unstable();
        routers.dedup();
        let (Some(first), Some(last)) = (routers.first(), routers.last()) else {
            return LinkSet::default();
        };
        if first == last {
            return LinkSet::default();
        }
        if self.is_pod() && self.place(*first, 0) != self.place(*last, 0) {
            return over_cubes(self, &routers);
        }
        let mut links = Bits::default();
        for dimension in 0..self.sizes.len() {
            if self.is_cabled(dimension) {
                self.add_ways(dimension, &routers, &mut links);
            }
        }
        links.into_links()
    }

    /// Adds the links of one dimension on the ways between all pairs of these routers. A message from a to b turns into
    /// this dimension where b is in the dimensions before and where a is in those after.
    fn add_ways(&self, dimension: usize, routers: &[u32], links: &mut Bits) {
        let (size, stride) = (self.sizes[dimension], self.strides[dimension]);
        let places = |line: &dyn Fn(u32) -> u32| {
            let place = |&router: &u32| (line(router), 1 << (router / stride % size));
            united(routers.iter().map(place).collect())
        };
        let leave = places(&|router| router % stride);
        let reach = places(&|router| router / (stride * size));
        let [up, down] = self.planes_of(dimension);
        // Most lines of a prism are alike.
        let mut known: Option<(u64, u64, [u64; 2])> = None;
        for &(before, to) in &reach {
            for &(after, from) in &leave {
                let used = match known {
                    Some((a, b, used)) if (a, b) == (from, to) => used,
                    _ => self.used_on_line(dimension, from, to),
                };
                known = Some((from, to, used));
                let line = before * stride * size + after;
                for (plane, used) in [up, down].into_iter().zip(used) {
                    for place in bits(used.into()) {
                        links.set(plane, line + place as u32 * stride);
                    }
                }
            }
        }
    }

    /// The links that messages from some places of a line to others use: up from a place, and down to it.
    fn used_on_line(&self, dimension: usize, from: u64, to: u64) -> [u64; 2] {
        let size = self.sizes[dimension];
        let range = |range: Range<u32>| range.fold(0u64, |set, place| set | 1 << (place % size));
        if !self.rings[dimension] {
            let (first, last) =
                (u64::trailing_zeros, |set: u64| u64::BITS - 1 - set.leading_zeros());
            return [range(first(from)..last(to)), range(first(to)..last(from))];
        }
        let mut used = [0; 2];
        for start in bits(from.into()).map(|start| start as u32) {
            for end in bits(to.into()).map(|end| end as u32) {
                let up = (end + size - start) % size;
                if 2 * up <= size {
                    used[0] |= range(start..start + up);
                }
                if 2 * (size - up) <= size {
                    used[1] |= range(end..end + size - up);
                }
            }
        }
        used
    }

    /// The links of a job in several cubes.
    ///
    /// A job whose boxes form a chain along one dimension uses one cross-section in all of its cubes: the smallest box
    /// around all its places. Along the chain it has whole cubes, and at most one part at each end, which reaches to the
    /// face where the chain goes on. Otherwise it uses its cubes wholly.
    fn links_of_cubes(&self, routers: &[u32]) -> LinkSet {
        let cubes: Vec<&[u32]> = self.cubes_of(routers).collect();
        let chain = (1..self.sizes.len())
            .find_map(|along| Some((along, self.chain(along, routers, &cubes)?)));
        let Some((along, sides)) = chain else { return self.links_of_whole_cubes(routers) };
        let mut links = Bits::default();
        for (routers, sides) in cubes.iter().zip(&sides) {
            self.add_box(self.place(routers[0], 0), sides, Some(along), &mut links);
        }
        links.into_links()
    }

    fn links_of_whole_cubes(&self, routers: &[u32]) -> LinkSet {
        let sides: Vec<_> = self.sizes[1..].iter().map(|&size| 0..size).collect();
        let mut links = Bits::default();
        for routers in self.cubes_of(routers) {
            self.add_box(self.place(routers[0], 0), &sides, None, &mut links);
        }
        links.into_links()
    }

    /// The routers in each cube, of ascending ones.
    fn cubes_of<'a>(&self, routers: &'a [u32]) -> impl Iterator<Item = &'a [u32]> {
        routers.chunk_by(|&a, &b| self.place(a, 0) == self.place(b, 0))
    }

    /// The boxes of a job in its cubes, if they form a chain along a dimension; `None` if they do not, or if all are
    /// whole cubes, which are joined to rings in all dimensions.
    fn chain(
        &self,
        along: usize,
        routers: &[u32],
        cubes: &[&[u32]],
    ) -> Option<Vec<Vec<Range<u32>>>> {
        let size = self.sizes[along];
        let mut own: Vec<Range<u32>> =
            cubes.iter().map(|routers| self.extent(routers, along)).collect();
        let parts: Vec<usize> =
            (0..cubes.len()).filter(|&cube| own[cube].len() as u32 != size).collect();
        let to_low = |own: &Range<u32>| 0..own.end;
        let to_high = |own: &Range<u32>| own.start..size;
        match *parts {
            [] => {}
            [one] => {
                let (low, high) = (to_low(&own[one]), to_high(&own[one]));
                own[one] = if low.len() <= high.len() { low } else { high };
            }
            [one, other] => {
                let ends = [
                    (to_low(&own[one]), to_high(&own[other])),
                    (to_high(&own[one]), to_low(&own[other])),
                ];
                let least = ends.into_iter().min_by_key(|(one, other)| one.len() + other.len())?;
                (own[one], own[other]) = least;
            }
            _ => return None,
        }
        let cross: Vec<Range<u32>> =
            (1..self.sizes.len()).map(|dimension| self.extent(routers, dimension)).collect();
        let is_full = |(dimension, side): (usize, &Range<u32>)| {
            dimension == along || side.len() as u32 == self.sizes[dimension]
        };
        if parts.is_empty() && (1..).zip(&cross).all(is_full) {
            return None;
        }
        let with_own = |own| {
            let mut sides = cross.clone();
            sides[along - 1] = own;
            sides
        };
        Some(own.into_iter().map(with_own).collect())
    }

    /// The places of some routers in a dimension, from the first to the last.
    fn extent(&self, routers: &[u32], dimension: usize) -> Range<u32> {
        let places = || routers.iter().map(|&router| self.place(router, dimension));
        places().min().unwrap_or(0)..places().max().map_or(0, |last| last + 1)
    }

    /// Adds all cables of a box of a cube, and its optical ports in one dimension, or in all.
    fn add_box(&self, cube: u32, sides: &[Range<u32>], along: Option<usize>, links: &mut Bits) {
        let mut routers = vec![cube * self.strides[0]];
        for (side, stride) in sides.iter().zip(&self.strides[1..]) {
            let along = |&first: &u32| side.clone().map(move |place| first + place * stride);
            routers = routers.iter().flat_map(along).collect();
        }
        for (dimension, side) in (1..).zip(sides) {
            let (cables, ports) = (self.planes_of(dimension), self.planes_of_ports(dimension));
            let has_ports = along.is_none_or(|along| along == dimension);
            for &router in &routers {
                let place = self.place(router, dimension);
                if place + 1 < side.end {
                    for plane in cables {
                        links.set(plane, router);
                    }
                }
                if has_ports && place == 0 {
                    links.set(ports[0], router);
                }
                if has_ports && place + 1 == self.sizes[dimension] {
                    links.set(ports[1], router);
                }
            }
        }
    }
}
