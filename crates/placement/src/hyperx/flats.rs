//! Flats: the switches that differ only in some dimensions. Of one dimension it is a line, of two a plane.

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

/// The flats of a shape with enough free slots, the fewest first.
pub(super) fn flats(search: &Search<'_>, inside: u32) -> Vec<Flat> {
    let hyperx = search.hyperx;
    let mut slots = vec![0; search.slots.len()];
    for (switch, &count) in (0..).zip(&search.slots) {
        let along = (0..hyperx.sizes().len()).filter(|dimension| inside >> dimension & 1 == 1);
        let to = |dimension: usize| hyperx.place(switch, dimension) * hyperx.strides()[dimension];
        let first = switch - along.map(to).sum::<u32>();
        slots[first as usize] += count;
    }
    let mut found: Vec<(u32, u32)> =
        slots.into_iter().zip(0..).filter(|&(slots, _)| slots >= search.wanted).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, first)| Flat { first, inside }).collect()
}
