//! Sets of nodes, with one bit per node.

use std::ops::Range;

/// A set of node indices (or cable ids) with a fixed capacity. Scans of ranges are fast.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSet {
    words: Vec<u64>,
    capacity: u32,
}

impl NodeSet {
    /// Returns the empty set over nodes `0..capacity`.
    pub fn empty(capacity: u32) -> Self {
        NodeSet { words: vec![0; capacity.div_ceil(64) as usize], capacity }
    }

    /// Returns the set of all nodes `0..capacity`.
    pub fn full(capacity: u32) -> Self {
        let mut set = NodeSet { words: vec![!0; capacity.div_ceil(64) as usize], capacity };
        if let (Some(last), used @ 1..) = (set.words.last_mut(), capacity % 64) {
            *last = (1 << used) - 1;
        }
        set
    }

    /// Returns the set of the given nodes; nodes outside `0..capacity` are ignored.
    pub fn of(capacity: u32, nodes: impl IntoIterator<Item = u32>) -> Self {
        let mut set = NodeSet::empty(capacity);
        for node in nodes {
            if node < capacity {
                set.insert(node);
            }
        }
        set
    }

    /// Returns the set of the nodes whose bits are set; node 0 is the lowest bit of the first word. Bits outside
    /// `0..capacity` are ignored.
    pub fn of_words(capacity: u32, words: &[u64]) -> Self {
        let mut set = NodeSet::full(capacity);
        for (index, word) in set.words.iter_mut().enumerate() {
            *word &= words.get(index).copied().unwrap_or(0);
        }
        set
    }

    /// The number of nodes that the set can hold.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether `node` is in the set.
    #[inline]
    pub fn contains(&self, node: u32) -> bool {
        self.words.get((node / 64) as usize).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// Adds `node`, which must be below the capacity.
    #[inline]
    pub fn insert(&mut self, node: u32) {
        self.words[(node / 64) as usize] |= 1 << (node % 64);
    }

    /// Removes `node`.
    #[inline]
    pub fn remove(&mut self, node: u32) {
        self.words[(node / 64) as usize] &= !(1 << (node % 64));
    }

    /// The 64 nodes from `first` on as bits: 1 if in the set, `first` in the lowest bit.
    #[inline]
    pub fn bits_from(&self, first: u32) -> u64 {
        let (index, shift) = ((first / 64) as usize, first % 64);
        let word = |index: usize| self.words.get(index).copied().unwrap_or(0);
        let low = word(index) >> shift;
        if shift == 0 { low } else { low | word(index + 1) << (64 - shift) }
    }

    /// Adds nodes by their bits, for the 64 nodes from `first` on. All must be below the capacity.
    #[inline]
    pub fn insert_bits(&mut self, first: u32, bits: u64) {
        self.change_bits(first, bits, |word, bits| *word |= bits);
    }

    /// Removes nodes by their bits, for the 64 nodes from `first` on.
    #[inline]
    pub fn remove_bits(&mut self, first: u32, bits: u64) {
        self.change_bits(first, bits, |word, bits| *word &= !bits);
    }

    #[inline]
    fn change_bits(&mut self, first: u32, bits: u64, change: impl Fn(&mut u64, u64)) {
        let (index, shift) = ((first / 64) as usize, first % 64);
        let high = if shift == 0 { 0 } else { bits >> (64 - shift) };
        for (index, bits) in [(index, bits << shift), (index + 1, high)] {
            if let Some(word) = self.words.get_mut(index).filter(|_| bits != 0) {
                change(word, bits);
            }
        }
    }

    /// Keeps only the nodes that are also in `other`.
    pub fn intersect(&mut self, other: &NodeSet) {
        for (index, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(index).copied().unwrap_or(0);
        }
    }

    /// Adds the nodes of `other`, which must be below the capacity.
    pub fn unite(&mut self, other: &NodeSet) {
        for (word, added) in self.words.iter_mut().zip(&other.words) {
            *word |= added;
        }
    }

    /// Removes the nodes that are in `other`.
    pub fn subtract(&mut self, other: &NodeSet) {
        for (word, taken) in self.words.iter_mut().zip(&other.words) {
            *word &= !taken;
        }
    }

    /// The number of nodes in the set.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the two sets have a node in common.
    pub fn intersects(&self, other: &NodeSet) -> bool {
        self.words.iter().zip(&other.words).any(|(one, other)| one & other != 0)
    }

    /// Whether all nodes of the set are in `other`.
    pub fn is_within(&self, other: &NodeSet) -> bool {
        self.words
            .iter()
            .enumerate()
            .all(|(index, word)| word & !other.words.get(index).copied().unwrap_or(0) == 0)
    }

    /// Whether a node of the set is in `other` but not in `but`.
    pub fn intersects_outside(&self, other: &NodeSet, but: &NodeSet) -> bool {
        let both = self.words.iter().zip(&other.words).map(|(one, other)| one & other);
        both.enumerate()
            .any(|(index, word)| word & !but.words.get(index).copied().unwrap_or(0) != 0)
    }

    /// The number of nodes of the set in `range`.
    pub fn count_in(&self, range: Range<u32>) -> u32 {
        let end = range.end.min(self.capacity);
        if range.start >= end {
            return 0;
        }
        let (first, last) = ((range.start / 64) as usize, ((end - 1) / 64) as usize);
        let from = !0 << (range.start % 64);
        let to = !0 >> (63 - (end - 1) % 64);
        if first == last {
            return (self.words[first] & from & to).count_ones();
        }
        let between: u32 = self.words[first + 1..last].iter().map(|word| word.count_ones()).sum();
        (self.words[first] & from).count_ones() + between + (self.words[last] & to).count_ones()
    }

    /// The nodes of the set in `range`, ascending.
    #[inline]
    pub fn iter_in(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let end = range.end.min(self.capacity);
        let mut index = (range.start / 64) as usize;
        let mut word = match self.words.get(index) {
            Some(word) if range.start < end => word & (!0 << (range.start % 64)),
            _ => 0,
        };
        std::iter::from_fn(move || {
            while word == 0 {
                index += 1;
                if index as u32 * 64 >= end {
                    return None;
                }
                word = self.words[index];
            }
            let node = index as u32 * 64 + word.trailing_zeros();
            word &= word - 1;
            (node < end).then_some(node)
        })
    }

    /// All nodes of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter_in(0..self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Operations on 64 nodes at once do the same as operations on each of them.
        #[test]
        fn bits_are_nodes(
            nodes in prop::collection::vec(0u32..300, 0..80),
            first in 0u32..230,
            bits in any::<u64>(),
        ) {
            let set = NodeSet::of(300, nodes);
            let chosen = || (0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| first + bit);
            let (mut together, mut each) = (set.clone(), set.clone());
            together.insert_bits(first, bits);
            chosen().for_each(|node| each.insert(node));
            prop_assert_eq!(&together, &each);
            let (mut together, mut each) = (set.clone(), set);
            together.remove_bits(first, bits);
            chosen().for_each(|node| each.remove(node));
            prop_assert_eq!(&together, &each);
        }

        /// A node set gives the same answers as an ordered set of its members.
        #[test]
        fn behaves_as_an_ordered_set(
            capacity in 1u32..300,
            nodes in prop::collection::vec(0u32..300, 0..80),
            gone in prop::collection::vec(0u32..300, 0..40),
            (start, end) in (0u32..320, 0u32..320),
        ) {
            let mut set = NodeSet::of(capacity, nodes.iter().copied());
            let mut model: BTreeSet<u32> = nodes.into_iter().filter(|&n| n < capacity).collect();
            for node in gone.into_iter().filter(|&n| n < capacity) {
                set.remove(node);
                model.remove(&node);
            }
            prop_assert_eq!(set.count() as usize, model.len());
            prop_assert!((0..320).all(|n| set.contains(n) == model.contains(&n)));
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            let inside: Vec<u32> = model.iter().copied().filter(|n| (start..end).contains(n)).collect();
            prop_assert_eq!(set.count_in(start..end) as usize, inside.len());
            prop_assert_eq!(set.iter_in(start..end).collect::<Vec<_>>(), inside);
            let bits = (0..64).filter(|bit| model.contains(&(start + bit)));
            prop_assert_eq!(set.bits_from(start), bits.fold(0, |bits, bit| bits | 1 << bit));
            let other = NodeSet::of(capacity, [start]);
            prop_assert_eq!(set.intersects(&other), start < capacity && model.contains(&start));
            let even = NodeSet::of(capacity, (0..capacity).step_by(2));
            prop_assert_eq!(set.is_within(&even), model.iter().all(|n| n % 2 == 0));
            let odd = model.iter().any(|n| n % 2 == 1 && *n != start);
            let rest = NodeSet::of(capacity, (0..capacity).filter(|n| n % 2 == 1));
            prop_assert_eq!(set.intersects_outside(&rest, &other), odd);
            let mut all = set.clone();
            all.unite(&rest);
            prop_assert!((0..capacity).all(|n| all.contains(n) == (n % 2 == 1 || model.contains(&n))));
            prop_assert_eq!(NodeSet::full(capacity).count(), capacity);
            prop_assert_eq!(&NodeSet::of_words(capacity, &set.words), &set);
            prop_assert_eq!(NodeSet::of_words(capacity, &[!0; 9]).count(), capacity);
        }
    }
}
