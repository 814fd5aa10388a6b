//! HyperX: switches at the points of a grid, joined all to all along each dimension.

use super::grid_leaves::{GridLeaves, GridWords, strides, times};
use super::leaves::Leaves;
use crate::check::{most_cables, positive, too_many_cables};
use crate::description::{HyperXDescription, SwitchCable};
use crate::error::InputError;
use crate::ids::{CableId, GroupIndex};

/// The fewest and the most dimensions.
const DIMENSIONS: std::ops::RangeInclusive<usize> = 1..=4;
/// The most switches in one dimension: its places are the bits of a word.
const MOST_IN_DIMENSION: u32 = u64::BITS;
/// The most switches of a machine.
const MOST_SWITCHES: u64 = 1 << 16;
const WORDS: GridWords = GridWords { kind: "HyperX", switch: "switch", switches: "switches" };

/// The cables of a HyperX (Ahn et al. 2009). A switch may have no nodes.
///
/// Routing is minimal: each link of a message takes it to its place in one more dimension, in any order of the
/// dimensions.
///
/// A row is the switches that differ only in the last dimension, and a bit of a word is a place in it. A link of a
/// [`LinkSet`](super::LinkSet) is all parallel cables of one direction between two switches. The words of all dimensions
/// but the last come first: see [`HyperX::word_to_row`]. Then each switch has a word: see [`HyperX::word_in_row`].
#[derive(Debug, Clone)]
pub struct HyperX {
    description: HyperXDescription,
    strides: Vec<u32>,
    /// The places of each switch.
    places: Vec<[u8; 4]>,
    leaves: GridLeaves,
    /// The first cable of each dimension, counted from 0; then their number.
    first_cable: Vec<u32>,
    /// The first pair of switches of each dimension; then their number.
    first_pair: Vec<u32>,
    /// The first word of each dimension; then their number.
    first_word: Vec<u32>,
}

impl HyperX {
    pub(super) fn build(
        description: &HyperXDescription,
        leaves: &Leaves<'_>,
    ) -> Result<Self, InputError> {
        check_hyperx(description)?;
        let HyperXDescription { dimensions: sizes, cables: counts, switches, .. } = description;
        let all: u32 = sizes.iter().product();
        let mut hyperx = HyperX {
            description: description.clone(),
            strides: strides(sizes),
            places: vec![[0; 4]; all as usize],
            leaves: GridLeaves::default(),
            first_cable: vec![0],
            first_pair: vec![0],
            first_word: vec![0],
        };
        for (switch, places) in (0..).zip(&mut hyperx.places) {
            for (place, (&size, &stride)) in
                places.iter_mut().zip(sizes.iter().zip(&hyperx.strides))
            {
                *place = (switch / stride % size) as u8;
            }
        }
        let (mut cables, mut joined, mut word) = (0u64, 0, 0);
        let rows = all / hyperx.row_size();
        for (dimension, (&size, &count)) in sizes.iter().zip(counts).enumerate() {
            joined += all / size * pairs(size);
            cables += u64::from(all / size * pairs(size)) * u64::from(count);
            if cables > most_cables(leaves.nodes) {
                return Err(too_many_cables(leaves.machine, leaves.nodes));
            }
            hyperx.first_cable.push(cables as u32);
            hyperx.first_pair.push(joined);
            word += if dimension + 1 < sizes.len() { rows * size } else { all };
            hyperx.first_word.push(word);
        }
        hyperx.leaves = GridLeaves::find(WORDS, sizes, switches, leaves)?;
        Ok(hyperx)
    }

    /// The description that the wiring was built from.
    pub fn description(&self) -> &HyperXDescription {
        &self.description
    }

    /// The switches in each dimension.
    #[inline]
    pub fn sizes(&self) -> &[u32] {
        &self.description.dimensions
    }

    /// The difference in number of neighbours in each dimension; 1 in the last.
    #[inline]
    pub fn strides(&self) -> &[u32] {
        &self.strides
    }

    /// The number of switches, with or without nodes.
    pub fn switches(&self) -> u32 {
        self.sizes().iter().product()
    }

    /// The number of switches of a row.
    #[inline]
    pub fn row_size(&self) -> u32 {
        self.sizes().last().copied().unwrap_or(1)
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.switches() / self.row_size()
    }

    /// The switch of a leaf of the hierarchy.
    #[inline]
    pub fn switch_of_leaf(&self, leaf: GroupIndex) -> u32 {
        self.leaves.switch_of(leaf)
    }

    /// The leaf of a switch; `None` if it has no nodes.
    #[inline]
    pub fn leaf_of_switch(&self, switch: u32) -> Option<GroupIndex> {
        self.leaves.leaf_of(switch)
    }

    /// Whether all switches have nodes, and leaves have the order of switches.
    pub fn is_in_order(&self) -> bool {
        self.leaves.is_in_order()
    }

    /// The name of a switch.
    pub fn switch_name(&self, switch: u32) -> &str {
        self.leaves.name(switch)
    }

    /// The place of a switch in one dimension.
    #[inline]
    pub fn place(&self, switch: u32, dimension: usize) -> u32 {
        self.places[switch as usize][dimension].into()
    }

    /// The number of the word with the links from a row to the row with another place in a dimension, which is not the
    /// last: bit `n` is the link between the switches with place `n` in both rows.
    #[inline]
    pub fn word_to_row(&self, dimension: usize, row: u32, place: u32) -> u32 {
        self.first_word[dimension] + row * self.sizes()[dimension] + place
    }

    /// The number of the word with the links from a switch to the others of its row, by their places.
    #[inline]
    pub fn word_in_row(&self, switch: u32) -> u32 {
        self.first_word[self.sizes().len() - 1] + switch
    }

    /// The number of words over which the links are spread.
    pub(super) fn link_words(&self) -> u32 {
        self.first_word.last().copied().unwrap_or_default()
    }

    /// Hops between two switches: the dimensions in which their places differ.
    pub fn hops(&self, a: u32, b: u32) -> u32 {
        let differs = |&dimension: &usize| self.place(a, dimension) != self.place(b, dimension);
        (0..self.sizes().len()).filter(differs).count() as u32
    }

    /// The sum of hops over all unordered pairs, for some nodes on each of these switches.
    pub fn pair_hops(&self, on_switches: &[(u32, f64)]) -> f64 {
        let all: f64 = on_switches.iter().map(|&(_, count)| count).sum();
        let mut hops = 0.0;
        for (dimension, &size) in self.sizes().iter().enumerate() {
            let mut on_place = vec![0.0; size as usize];
            for &(switch, count) in on_switches {
                on_place[self.place(switch, dimension) as usize] += count;
            }
            let same: f64 = on_place.iter().map(|count| count * count).sum();
            hops += (all * all - same) / 2.0;
        }
        hops
    }

    /// The number of cables between switches.
    pub fn cables(&self) -> u32 {
        self.first_cable.last().copied().unwrap_or_default()
    }

    /// The number of a pair of switches of a line among all pairs, which have the order of their cables: a switch, and
    /// the place of another one in a dimension.
    pub(crate) fn pair(&self, switch: u32, dimension: usize, place: u32) -> u32 {
        let (size, stride) = (self.sizes()[dimension], self.strides[dimension]);
        let line = switch / (stride * size) * stride + switch % stride;
        let own = self.place(switch, dimension);
        let (lower, upper) = (own.min(place), own.max(place));
        let in_line = pairs(size) - pairs(size - lower) + upper - lower - 1;
        self.first_pair[dimension] + line * pairs(size) + in_line
    }

    /// The switches that a cable joins, with all cables parallel to it; cables are counted from 0 here, dimension by
    /// dimension.
    pub fn cable(&self, cable: CableId) -> Option<SwitchCable> {
        if cable >= self.cables() {
            return None;
        }
        let dimension = self.first_cable.partition_point(|&first| first <= cable) - 1;
        let (size, stride) = (self.sizes()[dimension], self.strides[dimension]);
        let count = self.description.cables[dimension];
        let bundle = (cable - self.first_cable[dimension]) / count;
        let (line, mut pair) = (bundle / pairs(size), bundle % pairs(size));
        let mut lower = 0;
        while pair >= size - 1 - lower {
            pair -= size - 1 - lower;
            lower += 1;
        }
        let first = line / stride * stride * size + line % stride;
        let between = (first + lower * stride, first + (lower + 1 + pair) * stride);
        Some(SwitchCable { between, count, bandwidth: self.description.bandwidth[dimension] })
    }

    /// The number of parallel cables of a link, by the number of its word.
    pub(super) fn cables_of_word(&self, word: u32) -> u32 {
        let dimension = self.first_word.partition_point(|&first| first <= word) - 1;
        self.description.cables[dimension]
    }
}

/// The pairs of switches of a line.
fn pairs(size: u32) -> u32 {
    size * (size - 1) / 2
}

/// Checks what does not depend on the nodes.
pub(crate) fn check_hyperx(description: &HyperXDescription) -> Result<(), InputError> {
    let HyperXDescription { dimensions, cables, bandwidth, .. } = description;
    let refuse = |message: String| Err(InputError::whole(message));
    let is_size = |size: &u32| (1..=MOST_IN_DIMENSION).contains(size);
    if !DIMENSIONS.contains(&dimensions.len()) || !dimensions.iter().all(is_size) {
        return refuse(format!(
            "a HyperX has {} to {} dimensions of 1 to {MOST_IN_DIMENSION} switches, not {dimensions:?}",
            DIMENSIONS.start(),
            DIMENSIONS.end()
        ));
    }
    if dimensions.iter().map(|&size| u64::from(size)).product::<u64>() > MOST_SWITCHES {
        return refuse(format!(
            "a HyperX of {} has more than {MOST_SWITCHES} switches",
            times(dimensions)
        ));
    }
    let count = dimensions.len();
    if cables.len() != count || bandwidth.len() != count {
        return refuse(format!(
            "cables and bandwidth of a HyperX need a value for each of the {count} dimensions"
        ));
    }
    if let Some(cables) = cables.iter().find(|&&cables| !(1..=256).contains(&cables)) {
        return refuse(format!("1 to 256 cables join two switches of a HyperX, not {cables}"));
    }
    if let Some(bandwidth) = bandwidth.iter().find(|&&bandwidth| !positive(bandwidth)) {
        return refuse(format!("bandwidth of cables must be above 0, not {bandwidth} B/s"));
    }
    Ok(())
}
