//! The free routers and links of a torus, as sets of bits.

use std::borrow::Cow;

use super::Search;

/// A set of routers.
pub(super) type Routers = Vec<u64>;

/// The routers and links that a job may have.
pub(super) struct Grid<'a> {
    pub search: &'a Search<'a>,
    /// The most free slots on any router.
    pub most: u32,
    /// The routers with that many free slots.
    pub full: Routers,
    /// By dimension: the routers from which no job uses the links to and from the next one.
    pub open: Vec<Routers>,
}

impl<'a> Grid<'a> {
    /// Collects the routers with `most` free slots, and the links that no job uses.
    pub fn new(search: &'a Search<'a>, most: u32) -> Self {
        let torus = search.torus;
        let words = torus.words_of_plane();
        let open = |dimension: usize| {
            let [up, down] = torus.planes_of(dimension);
            (0..words)
                .map(|it| !(search.used.word(up + it) | search.used.word(down + it)))
                .collect()
        };
        let open = (0..torus.sizes().len()).map(open).collect();
        Grid { search, most, full: routers_with(search, most), open }
    }

    /// The routers with a free slot.
    pub fn routers_with_slots(&self) -> Cow<'_, Routers> {
        if self.most == 1 {
            Cow::Borrowed(&self.full)
        } else {
            Cow::Owned(routers_where(self.search, |count| count > 0))
        }
    }

    /// All routers.
    pub fn all_routers(&self) -> Routers {
        let mut all = vec![u64::MAX; self.full.len()];
        if let (Some(last), used @ 1..) = (all.last_mut(), self.search.torus.routers() % u64::BITS)
        {
            *last = (1 << used) - 1;
        }
        all
    }

    /// Of the routers with the fewest free slots that suffice, the one with the fewest neighbours that are free and can be
    /// reached: such a job uses no link, so it should not take a place where a prism could be.
    pub fn lone_router(&self) -> Option<u32> {
        let (search, torus) = (self.search, self.search.torus);
        let counts = search.free.counts_of(1);
        let wanted = search.wanted;
        let least = if self.most == wanted {
            wanted
        } else {
            counts.iter().copied().filter(|&count| count >= wanted).min()?
        };
        let mut able =
            if least == self.most { self.full.clone() } else { routers_with(search, least) };
        // The number of neighbours of each router, bit by bit.
        let words = self.full.len();
        let mut counter = vec![[0u64; 4]; words];
        let (mut next, mut back) = (vec![0; words], vec![0; words]);
        for (dimension, open) in self.open.iter().enumerate() {
            if !torus.is_cabled(dimension) || torus.sizes()[dimension] < 2 {
                continue;
            }
            torus.shifted(&self.full, dimension, 1, &mut next);
            for (next, open) in next.iter_mut().zip(open) {
                *next &= open;
            }
            let seen: Routers =
                open.iter().zip(&self.full).map(|(open, full)| open & full).collect();
            torus.shifted_back(&seen, dimension, 1, &mut back);
            for (counter, (next, back)) in counter.iter_mut().zip(next.iter().zip(&back)) {
                for mut carry in [*next, *back] {
                    for plane in &mut *counter {
                        (*plane, carry) = (*plane ^ carry, *plane & carry);
                    }
                }
            }
        }
        for plane in (0..4).rev() {
            let fewer: Routers =
                able.iter().zip(&counter).map(|(able, counter)| able & !counter[plane]).collect();
            if fewer.iter().any(|&word| word != 0) {
                able = fewer;
            }
        }
        first(&able)
    }
}

/// The routers with this number of free slots.
fn routers_with(search: &Search<'_>, slots: u32) -> Routers {
    let torus = search.torus;
    let words = torus.words_of_plane();
    if slots == 1 && torus.is_plain(search.free.fabric().nodes()) {
        let bits = (0..words).map(|word| search.free.bits_from(word * u64::BITS));
        if let Some(routers) = bits.collect() {
            return routers;
        }
    }
    routers_where(search, |count| count == slots)
}

/// The routers whose number of free slots is as wanted.
fn routers_where(search: &Search<'_>, is_wanted: impl Fn(u32) -> bool) -> Routers {
    let (torus, counts) = (search.torus, search.free.counts_of(1));
    if torus.is_in_order() {
        let add = |word: u64, &count: &u32| word << 1 | u64::from(is_wanted(count));
        return counts
            .chunks(u64::BITS as usize)
            .map(|counts| counts.iter().rev().fold(0, add))
            .collect();
    }
    let mut routers = vec![0; torus.words_of_plane() as usize];
    for (leaf, &count) in (0..).zip(counts) {
        let router = torus.router_of_leaf(leaf);
        routers[(router / u64::BITS) as usize] |=
            u64::from(is_wanted(count)) << (router % u64::BITS);
    }
    routers
}

/// The routers of a set, ascending.
pub(super) fn each(set: &[u64]) -> impl Iterator<Item = u32> + '_ {
    (0..).zip(set).flat_map(|(index, &word)| {
        std::iter::successors(Some(word), |&left| Some(left & left.wrapping_sub(1)))
            .take_while(|&left| left != 0)
            .map(move |left| index * u64::BITS + left.trailing_zeros())
    })
}

/// The first router of a set.
pub(super) fn first(set: &[u64]) -> Option<u32> {
    each(set).next()
}
