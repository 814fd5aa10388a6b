//! Free nodes as a step function of time that changes often.

/// The most steps of a block.
const MOST: usize = 64;

/// A block of consecutive steps; never empty.
#[derive(Debug, Clone)]
struct StepBlock {
    /// `free[i]` nodes are free from `times[i]` to the next step.
    times: Vec<f64>,
    free: Vec<i32>,
    /// The most and the fewest free nodes of the block's steps.
    most: i32,
    least: i32,
}

/// Converts a number of nodes to the 32 bits of a block, which are faster to move and compare.
fn narrow(nodes: i64) -> i32 {
    nodes.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// The position of a step: its block, and its index there.
type At = (usize, usize);

/// A step function stored in blocks. A change moves only the steps of a block, and a search can skip whole blocks. The
/// first step begins before all times; the last never ends. Neighbouring steps always differ.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    blocks: Vec<StepBlock>,
    /// The beginning of each block.
    begins: Vec<f64>,
}

impl StepBlock {
    fn new(times: Vec<f64>, free: Vec<i32>) -> Self {
        let mut block = StepBlock { times, free, most: 0, least: 0 };
        block.measure();
        block
    }

    fn measure(&mut self) {
        let ends = |(most, least): (i32, i32), &free: &i32| (most.max(free), least.min(free));
        (self.most, self.least) = self.free.iter().fold((i32::MIN, i32::MAX), ends);
    }

    /// Whether all steps of the block have at least `nodes` free nodes; `None` if only some have.
    fn has(&self, nodes: i32) -> Option<bool> {
        if self.least >= nodes { Some(true) } else { (self.most < nodes).then_some(false) }
    }
}

impl Steps {
    /// Returns a function with `free` free nodes at all times.
    pub fn new(free: i64) -> Self {
        let begin = f64::NEG_INFINITY;
        Steps { blocks: vec![StepBlock::new(vec![begin], vec![narrow(free)])], begins: vec![begin] }
    }

    /// The step that contains a time.
    fn at(&self, time: f64) -> At {
        let block = self.begins.partition_point(|&begin| begin <= time).saturating_sub(1);
        let times = &self.blocks[block].times;
        (block, times.partition_point(|&begin| begin <= time).saturating_sub(1))
    }

    /// The step just before a time.
    fn before(&self, time: f64) -> At {
        let block = self.begins.partition_point(|&begin| begin < time).saturating_sub(1);
        let times = &self.blocks[block].times;
        (block, times.partition_point(|&begin| begin < time).saturating_sub(1))
    }

    fn begin(&self, (block, step): At) -> f64 {
        self.blocks[block].times[step]
    }

    fn free(&self, (block, step): At) -> i64 {
        self.blocks[block].free[step].into()
    }

    fn next(&self, (block, step): At) -> Option<At> {
        if step + 1 < self.blocks[block].times.len() {
            return Some((block, step + 1));
        }
        (block + 1 < self.blocks.len()).then_some((block + 1, 0))
    }

    fn previous(&self, (block, step): At) -> Option<At> {
        if step > 0 {
            return Some((block, step - 1));
        }
        let block = block.checked_sub(1)?;
        Some((block, self.blocks[block].times.len() - 1))
    }

    fn end(&self, at: At) -> f64 {
        self.next(at).map_or(f64::INFINITY, |next| self.begin(next))
    }

    /// Free nodes just before a time.
    pub fn free_before(&self, time: f64) -> i64 {
        self.free(self.before(time))
    }

    /// The most free nodes at any time from `start` to `end`.
    pub fn most(&self, start: f64, end: f64) -> i64 {
        let (first, step) = self.at(start);
        let mut most = self.blocks[first].free[step];
        for (index, block) in self.blocks.iter().enumerate().skip(first) {
            let from = if index == first { step } else { 0 };
            let ends_later = self.begins.get(index + 1).is_none_or(|&next| next >= end);
            if from == 0 && !ends_later {
                most = most.max(block.most);
                continue;
            }
            let times = block.times.iter().zip(&block.free).skip(from);
            let steps = times.take_while(|&(&begin, _)| begin < end);
            most = steps.fold(most, |most, (_, &free)| most.max(free));
            if ends_later {
                break;
            }
        }
        most.into()
    }

    /// The steps that end at or before `time`, latest first: the beginning and the free nodes of each.
    pub fn backward(&self, time: f64) -> impl Iterator<Item = (f64, i64)> + '_ {
        let first = (self.begins[0] < time).then(|| self.before(time));
        let steps = std::iter::successors(first, |&at| self.previous(at));
        steps.map(|at| (self.begin(at), self.free(at)))
    }

    /// The steps that contain `time` or begin later, earliest first: the end and the free nodes of each.
    pub fn forward(&self, time: f64) -> impl Iterator<Item = (f64, i64)> + '_ {
        let steps = std::iter::successors(Some(self.at(time)), |&at| self.next(at));
        steps.map(|at| (self.end(at), self.free(at)))
    }

    /// Splits the step that contains a time, so that a step begins there.
    fn split(&mut self, time: f64) {
        let (block, step) = self.at(time);
        let changed = &mut self.blocks[block];
        if changed.times[step] >= time {
            return;
        }
        changed.times.insert(step + 1, time);
        changed.free.insert(step + 1, changed.free[step]);
        if changed.times.len() > MOST {
            let times = changed.times.split_off(MOST / 2);
            let free = changed.free.split_off(MOST / 2);
            changed.measure();
            self.begins.insert(block + 1, times[0]);
            self.blocks.insert(block + 1, StepBlock::new(times, free));
        }
    }

    /// Merges the step that begins at a time with the one before, if they are equal.
    fn join(&mut self, time: f64) {
        let (block, step) = self.at(time);
        let Some(previous) = self.previous((block, step)) else { return };
        if self.free(previous) != self.free((block, step)) {
            return;
        }
        let changed = &mut self.blocks[block];
        changed.times.remove(step);
        changed.free.remove(step);
        if changed.times.is_empty() {
            self.blocks.remove(block);
            self.begins.remove(block);
        } else {
            changed.measure();
            self.begins[block] = changed.times[0];
        }
    }

    /// Adds `nodes` (negative to take nodes) from `start` to `end`; an infinite end means forever. Times before the
    /// first step are ignored.
    pub fn add(&mut self, (start, end): (f64, f64), nodes: i64) {
        let start = start.max(self.begins[0]);
        if start >= end {
            return;
        }
        self.split(start);
        if end < f64::INFINITY {
            self.split(end);
        }
        let (first, last, nodes) = (self.at(start), self.before(end), narrow(nodes));
        for index in first.0..=last.0 {
            let block = &mut self.blocks[index];
            let from = if index == first.0 { first.1 } else { 0 };
            let until = if index == last.0 { last.1 + 1 } else { block.free.len() };
            block.free[from..until].iter_mut().for_each(|free| *free += nodes);
            if from == 0 && until == block.free.len() {
                block.most += nodes;
                block.least += nodes;
            } else {
                block.measure();
            }
        }
        self.join(start);
        if end < f64::INFINITY {
            self.join(end);
        }
    }

    /// Drops everything before `now`.
    pub fn forget_before(&mut self, now: f64) {
        let (block, step) = self.at(now);
        self.blocks.drain(..block);
        self.begins.drain(..block);
        let first = &mut self.blocks[0];
        first.times.drain(..step);
        first.free.drain(..step);
        first.times[0] = now;
        first.measure();
        self.begins[0] = now;
    }

    /// The beginning of the interval that ends at `time` and in which `nodes` nodes are always free; `time` if there is
    /// none.
    pub fn free_since(&self, time: f64, nodes: i64) -> f64 {
        let steps = self.backward(time).take_while(|&(_, free)| free >= nodes);
        steps.last().map_or(time, |(begin, _)| begin)
    }

    /// The first time, from `from` to before `before`, from which `nodes` nodes are free for `duration`.
    pub fn first(&self, nodes: i64, duration: f64, (from, before): (f64, f64)) -> Option<f64> {
        let (first, mut step) = self.at(from);
        let (mut since, nodes) = (None, narrow(nodes));
        for (index, block) in self.blocks.iter().enumerate().skip(first) {
            let last = block.times.len() - 1;
            let end = |step: usize| {
                let next = block.times.get(step + 1).or(self.begins.get(index + 1));
                next.copied().unwrap_or(f64::INFINITY)
            };
            let has = block.has(nodes);
            while step <= last {
                let until = end(if has.is_some() { last } else { step });
                if has.unwrap_or(block.free[step] >= nodes) {
                    let start = *since.get_or_insert(block.times[step].max(from));
                    if start >= before {
                        return None;
                    }
                    if start + duration <= until {
                        return Some(start);
                    }
                } else {
                    since = None;
                    if until >= before {
                        return None;
                    }
                }
                step = if has.is_some() { last } else { step } + 1;
            }
            step = 0;
        }
        None
    }

    /// The first time, from `from` to before `before`, from which `nodes` nodes are free for `duration` but not just
    /// before it; infinite if there is none.
    pub fn earliest(&self, nodes: i64, duration: f64, (from, before): (f64, f64)) -> f64 {
        let (first, step) = self.at(from);
        let mut since = None;
        // An interval that begins before `from` is not a new one.
        let mut is_old = self.begins[0] < from && self.free_before(from) >= nodes;
        let nodes = narrow(nodes);
        for (index, block) in self.blocks.iter().enumerate().skip(first) {
            let skipped = if index == first { step } else { 0 };
            let end = |step: usize| {
                let next = block.times.get(step + 1).or(self.begins.get(index + 1));
                next.copied().unwrap_or(f64::INFINITY)
            };
            let has = block.has(nodes);
            let steps = match has {
                Some(_) => block.times.len() - 1..block.times.len(),
                None => skipped..block.times.len(),
            };
            for step in steps {
                if block.free[step] < nodes {
                    (since, is_old) = (None, false);
                    continue;
                }
                let begin = if has.is_some() { skipped } else { step };
                let start = *since.get_or_insert(block.times[begin]);
                if !is_old && start >= before {
                    return f64::INFINITY;
                }
                if !is_old && start + duration <= end(step) {
                    return start;
                }
            }
            if since.is_none() && block.times[block.times.len() - 1] >= before {
                break;
            }
        }
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Steps;
    use crate::profile::FreeProfile;

    /// The end of the interval around `time` in which nodes that were free before it stay free.
    fn free_until(steps: &Steps, time: f64, nodes: i64) -> f64 {
        let is_free = steps.free_since(time, nodes) < time;
        let mut ends = steps.forward(time).take_while(|_| is_free);
        let mut until = time;
        while let Some((end, _)) = ends.next().filter(|step| step.1 >= nodes) {
            until = end;
        }
        until
    }

    proptest! {
        /// Steps in blocks give the same answers as a profile with a single list of steps.
        #[test]
        fn steps_answer_as_a_profile(
            held in prop::collection::vec((0u32..900, 1u32..200, -5i64..6), 0..400),
            asked in prop::collection::vec((0u32..1000, 1u32..100, 15i64..26), 1..40),
            forgotten in 0u32..100,
        ) {
            let mut steps = Steps::new(20);
            let mut profile = FreeProfile::new(0.0, 20);
            for (start, length, nodes) in held {
                let (start, end) = (f64::from(start), f64::from(start + length));
                steps.add((start, end), nodes);
                profile.add(start, end, nodes);
            }
            let now = f64::from(forgotten);
            steps.forget_before(now);
            for (time, length, nodes) in asked {
                let (time, length) = (f64::from(time).max(now), f64::from(length));
                prop_assert_eq!(steps.most(time, time + 0.5), profile.least(time, time + 0.5));
                let free = |time: f64| profile.least(time, time + 0.5);
                let most = (0..=length as u32).map(|later| free(time + f64::from(later))).max();
                prop_assert_eq!(Some(steps.most(time, time + length + 0.5)), most);
                let mut plain = profile.clone();
                plain.add(0.0, now, -1000);
                let earliest = plain.earliest(length, nodes);
                let mut from = profile.clone();
                from.add(0.0, time, -1000);
                let first = steps.first(nodes, length, (time, f64::INFINITY));
                prop_assert_eq!(first.unwrap_or(f64::INFINITY).to_bits(), from.earliest(length, nodes).to_bits());
                let before = steps.first(nodes, length, (time, time + 50.0));
                prop_assert_eq!(before, first.filter(|&first| first < time + 50.0));
                let found = steps.earliest(nodes, length, (now, f64::INFINITY));
                prop_assert_eq!(found.to_bits(), earliest.to_bits());
                let early = if earliest < time { earliest } else { f64::INFINITY };
                let found = steps.earliest(nodes, length, (now, time));
                prop_assert_eq!(found.to_bits(), early.to_bits());
                let since = steps.free_since(time, nodes);
                prop_assert!(since >= time || plain.least(since, time) >= nodes);
                prop_assert!(since <= now || steps.free_before(since) < nodes);
                // Intervals that begin before that time do not count, so remove them from the profile.
                plain.add(0.0, time, -1000);
                plain.add(time, free_until(&steps, time, nodes), -1000);
                let later = steps.earliest(nodes, length, (time, f64::INFINITY));
                prop_assert_eq!(later.to_bits(), plain.earliest(length, nodes).to_bits());
            }
        }
    }
}
