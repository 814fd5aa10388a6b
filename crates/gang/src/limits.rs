//! Limits on the length of slices.

/// Limits on the length of slices. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceLimits {
    /// The length that the user chose; `None` to choose from measurements.
    pub slice: Option<f64>,
    /// The shortest slice.
    pub shortest: f64,
    /// The longest slice.
    pub longest: f64,
    /// The longest that a gang may wait between two of its slices, and so the longest that its barriers are delayed. If
    /// the shortest slices of all rows take longer, they are used anyway.
    pub delay: f64,
    /// The cost of a switch, as measured by the driver.
    pub switch: f64,
    /// The largest share of a slice that a switch may cost.
    pub overhead: f64,
}

impl Default for SliceLimits {
    fn default() -> Self {
        SliceLimits {
            slice: None,
            shortest: 0.01,
            longest: 0.2,
            delay: 1.0,
            switch: 1e-4,
            overhead: 0.01,
        }
    }
}

/// The number of barriers that should fit in a slice, so that the one interrupted by its end matters little.
const BARRIERS: f64 = 20.0;

impl SliceLimits {
    /// Whether a slice can contain many barriers with this interval.
    pub fn holds(&self, interval: f64) -> bool {
        BARRIERS * interval <= self.longest
    }

    /// The length of a slice of average weight, for `rows` rows and the longest barrier interval of the jobs.
    pub fn seconds(&self, rows: usize, interval: f64) -> f64 {
        if let Some(chosen) = self.slice {
            return chosen.max(self.shortest);
        }
        let wanted = (self.switch / self.overhead).max(BARRIERS * interval).min(self.longest);
        let others = rows.saturating_sub(1).max(1) as f64;
        wanted.min(self.delay / others).max(self.shortest)
    }
}
