//! What jobs hold on one leaf over time.

/// The bit that says that a job crosses the leaf; the bits below it are nodes.
pub(crate) const CROSSED: u64 = 1 << 63;

/// The most nodes of a leaf that has a timeline.
pub(crate) const MOST_NODES: u32 = 63;

/// The bits held from `time` until the next step.
#[derive(Debug, Clone, Copy)]
struct HeldStep {
    time: f64,
    held: u64,
}

/// The held bits as a step function of time. Each bit has at most one holder at a time.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    /// The first step begins before all times; the last never ends.
    steps: Vec<HeldStep>,
    holds: u32,
}

/// How long bits of one leaf are free together, counting only times at which one of the given bits is free.
#[derive(Debug, Clone, Default)]
pub(crate) struct Openings {
    /// Entry `n` is the longest time for which `n + 1` nodes are free.
    pub with_nodes: Vec<f64>,
    /// The longest time for which nodes are free and no job crosses the leaf.
    pub uncrossed: f64,
    /// The longest time for which one of the bits is free, and the first and last moments of all such times.
    pub longest: f64,
    pub first: f64,
    pub last: f64,
}

impl Timeline {
    pub fn new() -> Self {
        Timeline { steps: vec![HeldStep { time: f64::NEG_INFINITY, held: 0 }], holds: 0 }
    }

    /// The number of holds so far; wraps around.
    pub fn holds(&self) -> u32 {
        self.holds
    }

    /// The index of the step that contains a time.
    fn step_at(&self, time: f64) -> usize {
        self.steps.partition_point(|step| step.time <= time).saturating_sub(1)
    }

    /// The end of a step.
    fn end_of(&self, index: usize) -> f64 {
        self.steps.get(index + 1).map_or(f64::INFINITY, |step| step.time)
    }

    /// The beginning of the first step after a time.
    pub fn step_after(&self, time: f64) -> f64 {
        self.end_of(self.step_at(time))
    }

    /// The index of the step that begins at a time, which is added if missing.
    fn split(&mut self, time: f64) -> usize {
        let index = self.step_at(time);
        if self.steps[index].time.total_cmp(&time).is_eq() {
            return index;
        }
        self.steps.insert(index + 1, HeldStep { time, ..self.steps[index] });
        index + 1
    }

    /// Merges a step with the one before it, if they are equal.
    fn join(&mut self, index: usize) {
        if index > 0
            && index < self.steps.len()
            && self.steps[index - 1].held == self.steps[index].held
        {
            self.steps.remove(index);
        }
    }

    /// Changes the held bits, and reports the change of each step through `says`.
    fn change(
        &mut self,
        (start, end): (f64, f64),
        change: impl Fn(u64) -> u64,
        mut says: impl FnMut((f64, f64), [u64; 2]),
    ) {
        if start >= end {
            return;
        }
        let first = self.split(start);
        let last = if end < f64::INFINITY { self.split(end) } else { self.steps.len() };
        for index in first..last {
            let held = self.steps[index].held;
            self.steps[index].held = change(held);
            says((self.steps[index].time, self.end_of(index)), [held, change(held)]);
        }
        self.join(last);
        self.join(first);
    }

    /// Holds bits from `start` to `end`. Returns false if some were already held during that time. Calls `says` for
    /// each change: the time span, the bits before and the bits after.
    pub fn hold(
        &mut self,
        bits: u64,
        (start, end): (f64, f64),
        says: impl FnMut((f64, f64), [u64; 2]),
    ) -> bool {
        let is_free = self.held(start, end) & bits == 0;
        self.holds = self.holds.wrapping_add(1);
        self.change((start, end), |held| held | bits, says);
        is_free
    }

    /// Gives bits back. Calls `says` for each change, as [`Timeline::hold`] does.
    pub fn give_back(
        &mut self,
        bits: u64,
        when: (f64, f64),
        says: impl FnMut((f64, f64), [u64; 2]),
    ) {
        self.change(when, |held| held & !bits, says);
    }

    /// All steps: their time spans and the bits held.
    pub fn spans(&self) -> impl Iterator<Item = ((f64, f64), u64)> + '_ {
        self.steps
            .iter()
            .enumerate()
            .map(|(index, step)| ((step.time, self.end_of(index)), step.held))
    }

    /// Drops most steps that have ended by `now`.
    pub fn forget_before(&mut self, now: f64) {
        const MANY: usize = 8;
        if self.steps.get(MANY).is_some_and(|step| step.time <= now) {
            self.steps.drain(..self.step_at(now));
            self.steps[0].time = f64::NEG_INFINITY;
        }
    }

    /// The bits that are held at any time from `start` to `end`.
    pub fn held(&self, start: f64, end: f64) -> u64 {
        self.held_from(self.step_at(start), end, |_| true)
    }

    /// Which of these bits are held at any time from `start` to `end`.
    pub fn held_of(&self, bits: u64, (start, end): (f64, f64)) -> u64 {
        bits & self.held_from(self.step_at(start), end, |held| bits & !held != 0)
    }

    /// The bits that are held just before a time.
    pub fn held_before(&self, time: f64) -> u64 {
        let index = self.steps.partition_point(|step| step.time < time);
        self.steps[index.saturating_sub(1)].held
    }

    /// The bits held at any time from a step to `end`. Stops early when `goes_on` is false for the bits found so far.
    fn held_from(&self, index: usize, end: f64, goes_on: impl Fn(u64) -> bool) -> u64 {
        let mut held = self.steps[index].held;
        for step in self.steps[index + 1..].iter().take_while(|step| step.time < end) {
            if !goes_on(held) {
                break;
            }
            held |= step.held;
        }
        held
    }

    /// The times, from `from` to before `until`, at which bits may have become free: `from`, and the beginnings of
    /// steps.
    fn starts(&self, (from, until): (f64, f64)) -> impl Iterator<Item = (usize, f64)> + '_ {
        let first = self.step_at(from);
        let later =
            (first + 1..self.steps.len()).take_while(move |&index| self.steps[index].time < until);
        let gains =
            later.filter(|&index| self.steps[index - 1].held & !self.steps[index].held != 0);
        std::iter::once((first, from)).chain(gains.map(|index| (index, self.steps[index].time)))
    }

    /// The earliest time in `between` from which `wanted` of the nodes are free for `duration`.
    pub fn earliest(
        &self,
        nodes: u64,
        wanted: u32,
        duration: f64,
        between: (f64, f64),
    ) -> Option<f64> {
        let has_room = |held: u64| (nodes & !held).count_ones() >= wanted;
        let mut starts = self.starts(between);
        let found = starts
            .find(|&(index, start)| has_room(self.held_from(index, start + duration, has_room)));
        found.map(|(_, start)| start)
    }

    /// Each time at which the number of nodes that stay free for `duration` may have grown, with that number.
    pub fn rooms<'a>(
        &'a self,
        room: impl Fn(u64) -> u32 + Copy + 'a,
        duration: f64,
        between: (f64, f64),
    ) -> impl Iterator<Item = (f64, u32)> + 'a {
        self.starts(between).map(move |(index, start)| {
            (start, room(self.held_from(index, start + duration, |held| room(held) > 0)))
        })
    }

    /// How long these bits of the leaf are free, alone and together with other nodes, at times that overlap the span
    /// from `from` to `until`.
    pub fn openings(&self, bits: u64, nodes: u64, (from, until): (f64, f64), now: f64) -> Openings {
        let mut found =
            Openings { first: f64::INFINITY, last: f64::NEG_INFINITY, ..Openings::default() };
        found.with_nodes.resize(nodes.count_ones() as usize, 0.0);
        let at = self.step_at(from);
        let earliest = self.step_at(now);
        let mut start = at;
        while self.end_of(start) < until {
            start += 1;
        }
        loop {
            let reaches = self.open_from(start, bits, nodes, (from, now), &mut found);
            if start <= earliest || start <= at && !reaches {
                break;
            }
            start -= 1;
        }
        for fewer in (1..found.with_nodes.len()).rev() {
            found.with_nodes[fewer - 1] = found.with_nodes[fewer - 1].max(found.with_nodes[fewer]);
        }
        found
    }

    /// Adds the openings that begin with one step. Returns whether any of the bits is free from there to `from`.
    fn open_from(
        &self,
        start: usize,
        bits: u64,
        nodes: u64,
        (from, now): (f64, f64),
        found: &mut Openings,
    ) -> bool {
        let begin = self.steps[start].time.max(now);
        let (mut held, mut reaches) = (0, false);
        for index in start..self.steps.len() {
            held |= self.steps[index].held;
            if bits & !held == 0 {
                break;
            }
            let end = self.end_of(index);
            if end <= from {
                continue;
            }
            reaches = true;
            let length = end - begin;
            let free = (nodes & !held).count_ones() as usize;
            if bits & nodes & !held != 0 {
                found.with_nodes[free - 1] = found.with_nodes[free - 1].max(length);
            }
            if free > 0 && held & CROSSED == 0 {
                found.uncrossed = found.uncrossed.max(length);
            }
            found.longest = found.longest.max(length);
            found.first = found.first.min(begin);
            found.last = found.last.max(end);
        }
        reaches
    }
}

#[cfg(test)]
mod tests;
