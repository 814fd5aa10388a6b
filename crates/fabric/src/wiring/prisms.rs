//! Prisms of a torus, and sets of its routers as bits.

use super::torus::Torus;

/// What the search for prisms needs of a torus; computed on first use.
#[derive(Debug, Clone)]
pub(super) struct Shapes {
    /// By dimension and place: the routers with a lower place.
    below: Vec<Vec<Box<[u64]>>>,
    /// The shapes of prisms in which messages stay, the smallest first.
    prisms: Vec<Prism>,
}

/// The shape of a prism: the product of an interval of each dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prism {
    /// The number of routers.
    pub routers: u32,
    /// A measure of what the prism takes from later ones, to compare prisms for one job: 16 for each router, 1 for each
    /// cable to a router next to the prism.
    pub price: u32,
    /// The side in each dimension; the others are 1.
    pub extents: [u8; 6],
}

impl Torus {
    fn shapes(&self) -> &Shapes {
        self.shapes.get_or_init(|| Shapes::of(self))
    }

    /// The sides of a prism in a dimension such that messages between its routers stay in it, ascending. In a ring that
    /// is up to half of the routers, rounded up, or the whole ring. A prism lies in one cube of a pod.
    fn sides(&self, dimension: usize) -> impl Iterator<Item = u32> {
        let size = self.sizes[dimension];
        let most = match (self.is_cabled(dimension), self.rings[dimension]) {
            (false, _) => 1,
            (true, true) => size.div_ceil(2),
            (true, false) => size,
        };
        let whole = (self.is_cabled(dimension) && most < size).then_some(size);
        (1..=most).chain(whole)
    }

    /// All shapes of prisms in which messages stay, with at least this number of routers, the smallest first; of these, the most compact.
    pub fn prisms(&self, routers: u32) -> &[Prism] {
        let all = &self.shapes().prisms;
        &all[all.partition_point(|prism| prism.routers < routers)..]
    }

    /// Writes the routers for which the router `by` places further along the dimension is in `set`. `by` is at least 1 and
    /// less than the size. Without a wrap, the last routers have no such router.
    pub fn shifted(&self, set: &[u64], dimension: usize, by: u32, into: &mut [u64]) {
        let (size, stride) = (self.sizes[dimension], self.strides[dimension]);
        let inside = &self.shapes().below[dimension][(size - by) as usize];
        down(set, by * stride, inside, into);
        if self.rings[dimension] {
            add_up(set, (size - by) * stride, inside, into);
        }
    }

    /// Writes the routers for which the router `by` places back along the dimension is in `set`.
    pub fn shifted_back(&self, set: &[u64], dimension: usize, by: u32, into: &mut [u64]) {
        let size = self.sizes[dimension];
        if self.rings[dimension] {
            return self.shifted(set, dimension, size - by, into);
        }
        into.fill(0);
        let first = &self.shapes().below[dimension][by as usize];
        add_up(set, by * self.strides[dimension], first, into);
    }
}

impl Shapes {
    fn of(torus: &Torus) -> Self {
        let words = torus.words_of_plane() as usize;
        let below = |dimension: usize, end: u32| {
            let mut set = vec![0u64; words];
            for router in (0..torus.routers()).filter(|&it| torus.place(it, dimension) < end) {
                set[(router / u64::BITS) as usize] |= 1 << (router % u64::BITS);
            }
            set.into()
        };
        let of_dimension = |dimension: usize| {
            (0..=torus.sizes[dimension]).map(|end| below(dimension, end)).collect()
        };
        let mut prisms = vec![Prism { routers: 1, price: 0, extents: [1; 6] }];
        for dimension in 0..torus.sizes.len() {
            let sides: Vec<u32> = torus.sides(dimension).collect();
            let with = |prism: Prism| {
                sides.iter().map(move |&side| {
                    let mut extents = prism.extents;
                    extents[dimension] = side as u8;
                    Prism { routers: prism.routers * side, price: 0, extents }
                })
            };
            prisms = prisms.into_iter().flat_map(with).collect();
        }
        for prism in &mut prisms {
            let faces = |(dimension, &size): (usize, &u32)| {
                let side = u32::from(prism.extents[dimension]);
                let has_faces = side < size && torus.is_cabled(dimension);
                if has_faces { 2 * prism.routers / side } else { 0 }
            };
            let around: u32 = torus.sizes.iter().enumerate().map(faces).sum();
            prism.price = 16 * prism.routers + around;
        }
        prisms.sort_by_key(|prism| (prism.routers, prism.price, prism.extents));
        Shapes { below: (0..torus.sizes.len()).map(of_dimension).collect(), prisms }
    }
}

/// Bit `n` of the answer is bit `n + by` of the set if `n` is in a set `inside`, else 0.
fn down(set: &[u64], by: u32, inside: &[u64], into: &mut [u64]) {
    let (words, bits) = ((by / u64::BITS) as usize, by % u64::BITS);
    let from = set.get(words..).unwrap_or(&[]);
    let (own, rest) = into.split_at_mut(from.len());
    rest.fill(0);
    for ((word, pair), inside) in own.iter_mut().zip(from.windows(2)).zip(inside) {
        // In two steps: the second shift is by 64 if `bits` is 0.
        *word = (pair[0] >> bits | pair[1] << 1 << (u64::BITS - 1 - bits)) & inside;
    }
    if let (Some(word), Some(last)) = (own.last_mut(), from.last()) {
        *word = last >> bits & inside[from.len() - 1];
    }
}

/// Adds to the answer, outside of a set `but`: bit `n` is bit `n - by` of the set.
fn add_up(set: &[u64], by: u32, but: &[u64], into: &mut [u64]) {
    let (words, bits) = ((by / u64::BITS) as usize, by % u64::BITS);
    let Some((word, own)) = into.get_mut(words..).and_then(<[u64]>::split_first_mut) else {
        return;
    };
    let but = &but[words..];
    *word |= set[0] << bits & !but[0];
    for ((word, pair), but) in own.iter_mut().zip(set.windows(2)).zip(&but[1..]) {
        *word |= (pair[1] << bits | pair[0] >> 1 >> (u64::BITS - 1 - bits)) & !but;
    }
}
