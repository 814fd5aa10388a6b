//! Free nodes as a step function of time.

use std::collections::VecDeque;

/// `free[i]` nodes are free from `times[i]` to `times[i + 1]`; the last step never ends.
#[derive(Debug, Clone)]
pub(crate) struct FreeProfile {
    times: Vec<f64>,
    free: Vec<i64>,
}

impl FreeProfile {
    /// Returns a profile with `free` nodes from `now` on.
    pub fn new(now: f64, free: i64) -> Self {
        FreeProfile { times: vec![now], free: vec![free] }
    }

    /// The index of the step that begins at `time`, which is added if missing.
    fn step(&mut self, time: f64) -> usize {
        let index = self.times.partition_point(|&t| t < time);
        if self.times.get(index) != Some(&time) {
            let before = self.free[index.saturating_sub(1)];
            self.times.insert(index, time);
            self.free.insert(index, before);
        }
        index
    }

    /// Adds `nodes` (negative to take nodes) from `start` to `end`. Both must not be before the beginning of the
    /// profile; an infinite end means forever.
    pub fn add(&mut self, start: f64, end: f64, nodes: i64) {
        if start >= end {
            return;
        }
        let first = self.step(start);
        let last = if end.is_finite() { self.step(end) } else { self.free.len() };
        for free in &mut self.free[first..last] {
            *free += nodes;
        }
    }

    /// The earliest time at which `nodes` are free for `duration`; infinite if never.
    pub fn earliest(&self, duration: f64, nodes: i64) -> f64 {
        let mut since = None;
        for (index, &free) in self.free.iter().enumerate() {
            if free < nodes {
                since = None;
                continue;
            }
            let start = *since.get_or_insert(self.times[index]);
            let end = self.times.get(index + 1).copied().unwrap_or(f64::INFINITY);
            if start + duration <= end {
                return start;
            }
        }
        f64::INFINITY
    }

    /// The fewest free nodes from `start` to `end`.
    pub fn least(&self, start: f64, end: f64) -> i64 {
        let first = self.times.partition_point(|&t| t <= start).saturating_sub(1);
        let last = self.times.partition_point(|&t| t < end).max(first + 1);
        self.free[first..last].iter().copied().min().unwrap_or(0)
    }

    /// For each step, its beginning and the fewest free nodes for `duration` from there on: like
    /// [`FreeProfile::least`] at every step, in one walk.
    pub fn leasts(&self, duration: f64) -> impl Iterator<Item = (f64, i64)> + '_ {
        // Steps from the present one on whose free nodes are fewer than in all later steps seen so far.
        let mut low: VecDeque<usize> = VecDeque::new();
        let mut seen = 0;
        self.times.iter().enumerate().map(move |(index, &time)| {
            while seen < self.times.len() && (seen <= index || self.times[seen] < time + duration) {
                while low.back().is_some_and(|&last| self.free[last] >= self.free[seen]) {
                    low.pop_back();
                }
                low.push_back(seen);
                seen += 1;
            }
            while low.front().is_some_and(|&first| first < index) {
                low.pop_front();
            }
            (time, low.front().map_or(0, |&first| self.free[first]))
        })
    }

    /// The times at which steps begin.
    pub fn times(&self) -> &[f64] {
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::FreeProfile;

    proptest! {
        /// Nodes that are taken and given back fit again for the same duration, however the end was rounded.
        #[test]
        fn what_is_given_back_fits_again(start in 0.0..1e7f64, duration in 1.0..1e5f64) {
            let mut profile = FreeProfile::new(0.0, 0);
            profile.add(start, start + duration, 1);
            prop_assert!(profile.earliest(duration, 1).total_cmp(&start).is_eq());
        }

        /// A profile gives the same answers as an array with the free nodes of each moment.
        #[test]
        fn a_profile_answers_as_an_array(
            held in prop::collection::vec((0usize..50, 0usize..30, any::<bool>(), -5i64..6), 0..20),
            asked in prop::collection::vec((0usize..80, 1usize..30, 12i64..30), 1..20),
        ) {
            let (mut profile, mut moments) = (FreeProfile::new(0.0, 20), [20i64; 120]);
            for (start, length, is_for_good, nodes) in held {
                let (end, last) = if is_for_good { (f64::INFINITY, 120) } else { ((start + length) as f64, start + length) };
                profile.add(start as f64, end, nodes);
                moments[start..last].iter_mut().for_each(|free| *free += nodes);
            }
            let (times, free) = (profile.times(), |time: f64| moments[time as usize]);
            prop_assert!(times.is_sorted_by(|one, next| one < next) && times[0].to_bits() == 0);
            prop_assert!((1..120).all(|at| moments[at] == moments[at - 1] || times.contains(&(at as f64))));
            prop_assert!(times.iter().all(|&time| profile.least(time, time + 0.5) == free(time)));
            for (start, length, nodes) in asked {
                let least = moments[start..start + length].iter().copied().min();
                prop_assert_eq!(Some(profile.least(start as f64, (start + length) as f64)), least);
                let fits = |from: usize| moments[from..(from + length).min(120)].iter().all(|&free| free >= nodes);
                let first = (0..120).find(|&from| fits(from)).map_or(f64::INFINITY, |from| from as f64);
                prop_assert_eq!(profile.earliest(length as f64, nodes).to_bits(), first.to_bits());
            }
        }

        /// One walk over the steps gives the same as a question at each step.
        #[test]
        fn leasts_is_least_at_every_step(
            held in prop::collection::vec((0u32..50, 1u32..30, -5i64..5), 0..20),
            duration in 1u32..40,
        ) {
            let mut profile = FreeProfile::new(0.0, 20);
            for (start, length, nodes) in held {
                profile.add(f64::from(start), f64::from(start + length), nodes);
            }
            let duration = f64::from(duration);
            for (time, least) in profile.leasts(duration) {
                prop_assert_eq!(least, profile.least(time, time + duration), "at {}", time);
            }
            prop_assert_eq!(profile.leasts(duration).count(), profile.times().len());
        }
    }
}
