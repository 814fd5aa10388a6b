//! Flats: the switches that differ only in some dimensions. Of one dimension it is a line, of two a plane.

use std::borrow::Cow;

use super::Search;

/// The switches with the places of `first` in all dimensions but those of `inside`, which are bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flat {
    pub first: u32,
    pub inside: u32,
}

/// The sets of dimensions of flats: those with few first, and of these those with the last dimensions. So jobs share
/// lines of one direction where they can.
pub(super) fn shapes(dimensions: usize) -> Vec<u32> {
    let mut shapes: Vec<u32> = (1..1 << dimensions).collect();
    shapes.sort_by_key(|shape| (shape.count_ones(), std::cmp::Reverse(*shape)));
    shapes
}

/// The most slots that a flat of a shape can have.
pub(super) fn capacity(search: &Search<'_>, inside: u32) -> u32 {
    let sizes = search.hyperx.sizes().iter().enumerate();
    let along = sizes.filter(|(dimension, _)| inside >> dimension & 1 == 1);
    along.fold(search.most, |slots, (_, &size)| slots.saturating_mul(size))
}

/// The flats of a shape with enough free slots, at most `most` of them, the fewest slots first.
pub(super) fn flats(search: &Search<'_>, inside: u32, most: usize) -> Vec<Flat> {
    let is_inside = |dimension: usize| inside >> dimension & 1 == 1;
    // The sums along the dimensions done so far: the places of the others, in the order of their switches.
    let mut sums: Cow<'_, [u32]> = Cow::Borrowed(&search.slots);
    let mut inner = sums.len();
    for (dimension, &size) in search.hyperx.sizes().iter().enumerate() {
        let block = inner;
        inner /= size as usize;
        if is_inside(dimension) {
            sums = added(&sums, block, inner).into();
        }
    }
    let with_slots = sums.iter().copied().zip(0..).filter(|&(slots, _)| slots >= search.wanted);
    let mut found: Vec<(u32, u32)> = with_slots.collect();
    if found.len() > most {
        found.select_nth_unstable(most);
        found.truncate(most);
    }
    found.sort_unstable();
    let flat = |(_, index)| Flat { first: first_of(search, inside, index), inside };
    found.into_iter().map(flat).collect()
}

/// For each block of this length, the sums of the elements at the same place of all its parts.
fn added(numbers: &[u32], block: usize, part: usize) -> Vec<u32> {
    if part == 1 {
        return numbers.chunks(block).map(|block| block.iter().sum()).collect();
    }
    let mut sums = Vec::with_capacity(numbers.len() / block * part);
    for block in numbers.chunks(block) {
        let (first, others) = block.split_at(part);
        let start = sums.len();
        sums.extend_from_slice(first);
        for part in others.chunks(part) {
            sums[start..].iter_mut().zip(part).for_each(|(sum, number)| *sum += number);
        }
    }
    sums
}

/// The first switch of a flat, given its index among those of its shape.
fn first_of(search: &Search<'_>, inside: u32, mut index: u32) -> u32 {
    let (sizes, strides) = (search.hyperx.sizes(), search.hyperx.strides());
    let mut first = 0;
    for dimension in (0..sizes.len()).rev().filter(|dimension| inside >> dimension & 1 == 0) {
        first += index % sizes[dimension] * strides[dimension];
        index /= sizes[dimension];
    }
    first
}
