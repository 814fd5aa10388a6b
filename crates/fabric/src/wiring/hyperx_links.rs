//! The links of a HyperX that a set of nodes may use.

use super::group_shape::bits;
use super::hyperx::HyperX;
use super::link_set::LinkSet;

/// The switches of a job in each row, and those that such rows have together.
struct JobRows<'a> {
    hyperx: &'a HyperX,
    /// Places of the job in each dimension.
    places: Vec<u64>,
    /// By a set of dimensions without the last, then by row: the places in the last dimension of the job's switches that
    /// have the row's places in these dimensions. Only the rows with place 0 in all other dimensions have an entry.
    by_dimensions: Vec<Vec<u64>>,
}

impl<'a> JobRows<'a> {
    fn new(hyperx: &'a HyperX, switches: &[u32]) -> Self {
        let (sizes, rows) = (hyperx.sizes(), hyperx.rows() as usize);
        let outer = sizes.len() - 1;
        let mut places = vec![0; sizes.len()];
        let all = (1usize << outer) - 1;
        let mut by_dimensions = vec![vec![0; rows]; all + 1];
        for &switch in switches {
            for (dimension, places) in places.iter_mut().enumerate() {
                *places |= 1 << hyperx.place(switch, dimension);
            }
            let row = (switch / hyperx.row_size()) as usize;
            by_dimensions[all][row] |= 1 << hyperx.place(switch, outer);
        }
        let mut job = JobRows { hyperx, places, by_dimensions };
        let used = job.rows();
        for set in (0..all).rev() {
            // Of a set with one dimension more, the rows that differ only in that are one.
            let dropped = (!set).trailing_zeros() as usize;
            let (less, more) = job.by_dimensions.split_at_mut(set | 1 << dropped);
            for &row in &used {
                let from = masked(hyperx, row, set | 1 << dropped);
                less[set][masked(hyperx, row, set) as usize] |= more[0][from as usize];
            }
        }
        job
    }

    /// All rows whose places are those of the job, ascending.
    fn rows(&self) -> Vec<u32> {
        let mut rows = vec![0];
        for (dimension, &places) in self.places[..self.places.len() - 1].iter().enumerate() {
            let stride = self.hyperx.strides()[dimension] / self.hyperx.row_size();
            let with = |row: u32| bits(places.into()).map(move |place| row + place as u32 * stride);
            rows = rows.into_iter().flat_map(with).collect();
        }
        rows
    }

    /// The places in the last dimension of the job's switches with the row's places in some dimensions.
    fn with_places(&self, set: usize, row: u32) -> u64 {
        self.by_dimensions[set][masked(self.hyperx, row, set) as usize]
    }

    /// The links from a row to the row with another place in a dimension, by their places in the last one.
    ///
    /// A message from a to b takes the link at a place if each of the other dimensions is b's, which the message has
    /// passed, or a's. So the link is used if for some of these dimensions the job has switches with the place's
    /// coordinates there, one on each side.
    fn links_to_row(&self, dimension: usize, row: u32, other: u32) -> u64 {
        let own = 1 << dimension;
        let mut links = 0;
        for set in (0..self.by_dimensions.len()).filter(|set| set & own != 0) {
            let here = self.with_places(set, row);
            let there = self.with_places((self.by_dimensions.len() - 1) & !set | own, other);
            if here != 0 && there != 0 {
                links |= here | there;
            }
        }
        links
    }

    /// The links from a switch of a row, by its place, to the others of the row: as [`JobRows::links_to_row`].
    fn links_in_row(&self, row: u32, place: u32) -> u64 {
        let mut links = 0;
        for set in 0..self.by_dimensions.len() {
            if self.with_places(set, row) >> place & 1 == 1 {
                links |= self.with_places((self.by_dimensions.len() - 1) & !set, row);
            }
        }
        links & !(1 << place)
    }
}

/// The row with the same places in a set of dimensions, and place 0 in all others.
fn masked(hyperx: &HyperX, row: u32, set: usize) -> u32 {
    let size = hyperx.row_size();
    let strides = &hyperx.strides()[..hyperx.strides().len() - 1];
    let inside = strides.iter().enumerate().filter(|(dimension, _)| set >> dimension & 1 == 1);
    inside.map(|(dimension, stride)| hyperx.place(row * size, dimension) * (stride / size)).sum()
}

impl HyperX {
    /// All links that a job on these switches may use: those on all minimal routes between them.
    pub fn links_of(&self, switches: impl Iterator<Item = u32>) -> LinkSet {
        let mut switches: Vec<u32> = switches.collect();
        switches.sort_unstable();
        switches.dedup();
        if switches.len() < 2 {
            return LinkSet::default();
        }
        let job = JobRows::new(self, &switches);
        let (rows, last) = (job.rows(), self.sizes().len() - 1);
        let mut words = Vec::new();
        for dimension in 0..last {
            let stride = self.strides()[dimension] / self.row_size();
            for &row in &rows {
                let own = self.place(row * self.row_size(), dimension);
                for place in bits(job.places[dimension].into()).map(|place| place as u32) {
                    if place != own {
                        let other = row - own * stride + place * stride;
                        let links = job.links_to_row(dimension, row, other);
                        words.push((self.word_to_row(dimension, row, place), links));
                    }
                }
            }
        }
        for &row in &rows {
            for place in bits(job.places[last].into()).map(|place| place as u32) {
                let number = self.word_in_row(row * self.row_size() + place);
                words.push((number, job.links_in_row(row, place)));
            }
        }
        LinkSet::of(words)
    }

    /// The number of directed cables in a set of links.
    pub(super) fn cables_in(&self, links: &LinkSet) -> u32 {
        let words = links.words().iter();
        words.map(|&(word, links)| links.count_ones() * self.cables_of_word(word)).sum()
    }
}
