//! How long slices may be.

/// What bounds the length of slices. Times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The length a user chose; `None` to choose by what is measured.
    pub slice: Option<f64>,
    /// The shortest slice.
    pub shortest: f64,
    /// The longest slice.
    pub longest: f64,
    /// How long a gang may wait between two of its slices, and so the longest that a barrier of it is held up.
    /// If the shortest slices of all rows take longer than that, those slices are used.
    pub delay: f64,
    /// What a switch costs, as measured by the driver.
    pub switch: f64,
    /// The share of a slice that a switch may cost.
    pub overhead: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            slice: None,
            shortest: 0.01,
            longest: 0.2,
            delay: 1.0,
            switch: 1e-4,
            overhead: 0.01,
        }
    }
}

/// Barriers that should fit a slice: the one that the slice's end breaks is then a small part.
const BARRIERS: f64 = 20.0;

impl Limits {
    /// Whether a slice holds many barriers that are so far apart.
    pub fn holds(&self, interval: f64) -> bool {
        BARRIERS * interval <= self.longest
    }

    /// The length of a slice of average weight, for `rows` rows and the longest of the jobs' barrier intervals.
    pub fn seconds(&self, rows: usize, interval: f64) -> f64 {
        if let Some(chosen) = self.slice {
            return chosen.max(self.shortest);
        }
        let wanted = (self.switch / self.overhead).max(BARRIERS * interval).min(self.longest);
        let others = rows.saturating_sub(1).max(1) as f64;
        wanted.min(self.delay / others).max(self.shortest)
    }
}
