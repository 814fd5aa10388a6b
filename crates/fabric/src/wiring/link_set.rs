//! Sets of links, as sparse bit sets.

use std::ops::Range;

/// A set of links of a wiring that is not a tree. A link is all parallel cables from one switch to another, because traffic
/// may use any of them; between groups of a dragonfly, in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkSet {
    /// Number and bits of each word that is not 0, ascending.
    words: Box<[(u32, u64)]>,
}

impl LinkSet {
    /// Returns the set of these words; their numbers ascend.
    pub(super) fn of(words: Vec<(u32, u64)>) -> Self {
        debug_assert!(words.windows(2).all(|pair| pair[0].0 < pair[1].0), "words ascend");
        LinkSet { words: words.into_iter().filter(|&(_, bits)| bits != 0).collect() }
    }

    /// Returns the set of these words, which may come in any order and more than once.
    pub fn of_any(words: Vec<(u32, u64)>) -> Self {
        LinkSet::of(united(words))
    }

    /// Number and bits of each word that is not 0, ascending.
    #[inline]
    pub fn words(&self) -> &[(u32, u64)] {
        &self.words
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of links, where parallel cables count once.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|&(_, bits)| bits.count_ones()).sum()
    }

    /// The links that are also in another set.
    #[must_use]
    pub fn and(&self, other: &LinkSet) -> LinkSet {
        let mut theirs = other.words.iter().peekable();
        let mut both = Vec::new();
        for &(number, bits) in &self.words {
            while theirs.next_if(|&&(next, _)| next < number).is_some() {}
            if let Some(&(_, other)) = theirs.next_if(|&&(next, _)| next == number) {
                both.push((number, bits & other));
            }
        }
        LinkSet::of(both)
    }

    /// The links of both sets.
    #[must_use]
    pub fn or(&self, other: &LinkSet) -> LinkSet {
        LinkSet::of_any(self.words.iter().chain(&other.words).copied().collect())
    }

    /// The links that are in two or more of some sets, whose words have numbers below `words`.
    pub fn in_several<'a>(sets: impl Iterator<Item = &'a LinkSet>, words: u32) -> LinkSet {
        let mut found = vec![(0u64, 0u64); words as usize];
        for &(number, bits) in sets.flat_map(LinkSet::words) {
            let (once, more) = &mut found[number as usize];
            (*once, *more) = (*once | bits, *more | *once & bits);
        }
        LinkSet::of((0..).zip(found).map(|(number, (_, more))| (number, more)).collect())
    }

    /// The words with a number in a range.
    pub(super) fn words_in(&self, numbers: Range<u32>) -> &[(u32, u64)] {
        let before = |end| self.words.partition_point(|&(number, _)| number < end);
        &self.words[before(numbers.start)..before(numbers.end)]
    }
}

/// Bits of some numbers, with all bits of a number together; the numbers ascend.
pub(super) fn united(mut bits: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
    if !bits.is_sorted_by_key(|&(number, _)| number) {
        bits.sort_unstable_by_key(|&(number, _)| number);
    }
    bits.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 |= next.1;
        }
        same
    });
    bits
}
