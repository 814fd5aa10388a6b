//! Classes of waiting jobs with equal requests, and the times at which they may fit.

use std::collections::HashMap;
use std::ops::Range;

use topolane_placement::Request;

use super::held::HeldTimelines;
use super::homes::LeafRuns;
use super::opening::{Opening, OpeningRoom};
use super::windows::{Window, Windows};
use crate::queues::reservation::lasts;

/// Jobs that ask for the same nodes and walltime, and the times, in seconds, at which they may fit.
#[derive(Debug)]
struct WaitingClass {
    nodes: u32,
    lasts: f64,
    /// The index of the runs of leaves where they must lie.
    home: usize,
    windows: Windows,
    /// Before this time, such a job is known not to fit, except in the windows.
    clear: f64,
    /// The earliest time at which it may fit.
    first: f64,
    /// The number of its home's openings that its windows already include.
    seen: usize,
}

/// An opening in a run of leaves: something was given back there.
#[derive(Debug)]
struct Opened {
    /// The index of the run.
    run: usize,
    /// The time span for which it had been held.
    when: (f64, f64),
    room: OpeningRoom,
}

/// A quick test that excludes most jobs from using an opening. It has everything that is checked for every pair of job
/// and opening.
#[derive(Debug)]
struct OpeningBounds {
    /// No job that uses the opening begins before this time.
    first: f64,
    /// When the span of the opening begins.
    begin: f64,
    /// No job that uses the opening lasts longer, in seconds.
    longest: f64,
}

/// The runs of leaves where jobs must lie, and the openings there.
#[derive(Debug)]
struct Home {
    homes: LeafRuns,
    /// No class has fewer nodes than this.
    fewest: u32,
    /// No class has a later `clear` than this.
    clear: f64,
    /// The openings since the last [`WaitingClasses::trim`].
    opened: Vec<Opened>,
    bounds: Vec<OpeningBounds>,
}

impl Home {
    /// Records an opening. No job that uses it can begin before `first`.
    fn note(&mut self, first: f64, opened: Opened) {
        self.bounds.push(OpeningBounds {
            first,
            begin: opened.when.0,
            longest: opened.room.longest(),
        });
        self.opened.push(opened);
    }

    /// The window in which a job of a class may begin to use an opening; `None` if the opening is too small, or no
    /// longer there.
    fn window(
        &mut self,
        index: usize,
        class: &WaitingClass,
        held: &mut HeldTimelines,
        now: f64,
    ) -> Option<Window> {
        let OpeningBounds { first, begin, .. } = self.bounds[index];
        let opened = &mut self.opened[index];
        let from = first.max(begin - class.lasts - 1.0).max(now);
        let until = opened.when.1.min(class.clear);
        if from >= until || !opened.room.may_hold(class.nodes, class.lasts) {
            return None;
        }
        let run = self.homes.runs[opened.run].clone();
        match &mut opened.room {
            OpeningRoom::Within { leaf, bits, holds, longest } if *holds != held.holds(*leaf) => {
                // Other jobs have taken a part of the opening since.
                let openings = held.openings(*leaf, *bits, opened.when, now);
                (*holds, *longest) = (held.holds(*leaf), openings.with_nodes);
                let bounds = &mut self.bounds[index];
                (bounds.first, bounds.longest) = (openings.first, opened.room.longest());
                self.window(index, class, held, now)
            }
            OpeningRoom::Within { .. } => Some(Window { run, from, until }),
            OpeningRoom::Across { .. } => {
                let shape = (class.nodes, class.lasts);
                let found = held.counted_from(&run, shape, (from, opened.when.1));
                if found.is_none() {
                    opened.room.rule_out(class.nodes, class.lasts);
                }
                found.filter(|&from| from < until).map(|from| Window { run, from, until })
            }
        }
    }
}

/// All classes of waiting jobs.
#[derive(Debug, Default)]
pub(super) struct WaitingClasses {
    classes: Vec<WaitingClass>,
    homes: Vec<Home>,
    /// The index of each class, by its home, its nodes and the bits of its walltime.
    known: HashMap<(usize, u32, u64), usize>,
    /// Indices of dropped classes.
    gone: Vec<usize>,
}

impl WaitingClasses {
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns the class of a request that must lie in these homes.
    pub fn of(&mut self, request: &Request, homes: LeafRuns) -> usize {
        let known = self.homes.iter().position(|home| home.homes == homes);
        let home = known.unwrap_or_else(|| {
            let (fewest, clear, opened) = (u32::MAX, f64::NEG_INFINITY, Vec::new());
            self.homes.push(Home { homes, fewest, clear, opened, bounds: Vec::new() });
            self.homes.len() - 1
        });
        self.with(home, request.nodes, lasts(request))
    }

    /// Returns the class of jobs that differ from a class only in how long they last.
    pub fn like(&mut self, class: usize, lasts: f64) -> usize {
        let WaitingClass { home, nodes, .. } = self.classes[class];
        self.with(home, nodes, lasts)
    }

    fn with(&mut self, home: usize, nodes: u32, lasts: f64) -> usize {
        let key = (home, nodes, lasts.to_bits());
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let never = f64::NEG_INFINITY;
        let class = WaitingClass {
            nodes,
            lasts,
            home,
            windows: Windows::default(),
            clear: never,
            first: never,
            seen: self.homes[home].opened.len(),
        };
        self.homes[home].fewest = self.homes[home].fewest.min(nodes);
        let index = if let Some(index) = self.gone.pop() {
            self.classes[index] = class;
            index
        } else {
            self.classes.push(class);
            self.classes.len() - 1
        };
        self.known.insert(key, index);
        index
    }

    pub fn nodes(&self, class: usize) -> u32 {
        self.classes[class].nodes
    }

    /// The walltime of the jobs of a class, in seconds.
    pub fn lasts(&self, class: usize) -> f64 {
        self.classes[class].lasts
    }

    /// The run, among those where jobs of a class must lie, that contains a leaf.
    pub fn run_with(&self, class: usize, leaf: u32) -> Option<Range<u32>> {
        let homes = &self.homes[self.classes[class].home].homes;
        homes.with(&(leaf..leaf + 1)).next().map(|run| homes.runs[run].clone())
    }

    /// Whether a job of a class may fit before `start`.
    pub fn may_fit_before(
        &mut self,
        class: usize,
        held: &mut HeldTimelines,
        start: f64,
        now: f64,
    ) -> bool {
        self.see(class, held, now).0.first < start
    }

    /// Returns a class and its home after adding all openings there to its windows.
    fn see(
        &mut self,
        class: usize,
        held: &mut HeldTimelines,
        now: f64,
    ) -> (&mut WaitingClass, &mut Home) {
        let class = &mut self.classes[class];
        let home = &mut self.homes[class.home];
        let (clear, lasts) = (class.clear, class.lasts);
        let may_use = |opened: &OpeningBounds| {
            opened.begin < clear + lasts + 1.0 && opened.first < clear && lasts <= opened.longest
        };
        let mut index = class.seen;
        while let Some(later) = home.bounds[index..].iter().position(may_use) {
            index += later;
            if let Some(window) = home.window(index, class, held, now) {
                class.first = class.first.min(window.from);
                class.windows.push(window);
            }
            index += 1;
        }
        class.seen = home.bounds.len();
        (class, home)
    }

    /// Shortens the windows of each class to its time in `last`. Drops the classes whose time is `None`.
    pub fn trim(&mut self, last: &[Option<f64>], held: &mut HeldTimelines, now: f64) {
        for (index, last) in last.iter().enumerate() {
            if last.is_some_and(|last| self.classes[index].clear.min(last) > now) {
                self.see(index, held, now);
            }
        }
        for home in &mut self.homes {
            home.opened.clear();
            home.bounds.clear();
            (home.clear, home.fewest) = (f64::NEG_INFINITY, u32::MAX);
        }
        for (index, (class, last)) in self.classes.iter_mut().zip(last).enumerate() {
            let Some(last) = last else {
                let key = (class.home, class.nodes, class.lasts.to_bits());
                // Another class may have reused the slot.
                if self.known.get(&key) == Some(&index) {
                    self.known.remove(&key);
                    self.gone.push(index);
                }
                continue;
            };
            class.clear = class.clear.min(*last);
            class.windows.trim(class.clear);
            class.first = class.clear.min(class.windows.first());
            class.seen = 0;
            let home = &mut self.homes[class.home];
            home.clear = home.clear.max(class.clear);
            home.fewest = home.fewest.min(class.nodes);
        }
    }

    /// Records where and when jobs may fit after something was given back.
    pub fn open(&mut self, openings: &[Opening], held: &mut HeldTimelines, now: f64) {
        for opening in openings.iter().filter(|opening| opening.bits != 0) {
            self.open_leaf(opening, held, now);
        }
        if let Some(opening) = Opening::joined(openings) {
            self.open_leaves(&opening, held, now);
        }
    }

    /// Records an opening for jobs that fit on one leaf.
    fn open_leaf(&mut self, opening: &Opening, held: &HeldTimelines, now: f64) {
        let (bits, when) = (opening.bits, opening.when);
        let longest = &opening.openings.with_nodes;
        if longest.first().is_none_or(|&longest| longest <= 0.0) {
            return;
        }
        let first = opening.openings.first.max(now);
        for home in &mut self.homes {
            if home.clear <= first || longest.len() < home.fewest as usize {
                continue;
            }
            for run in home.homes.with(&opening.leaves) {
                let leaf = opening.leaves.start;
                let holds = held.holds(leaf);
                let room = OpeningRoom::Within { leaf, bits, holds, longest: longest.clone() };
                home.note(first, Opened { run, when, room });
            }
        }
    }

    /// Records an opening for jobs that cross leaves.
    fn open_leaves(&mut self, opening: &Opening, held: &mut HeldTimelines, now: f64) {
        let first = opening.openings.first.max(now);
        for home in &mut self.homes {
            if home.homes.are_leaves || home.clear <= first {
                continue;
            }
            for run in home.homes.with(&opening.leaves) {
                let room = OpeningRoom::across(opening, held, &home.homes.runs[run], home.fewest);
                if let Some(room) = room {
                    home.note(first, Opened { run, when: opening.when, room });
                }
            }
        }
    }

    /// The earliest time before `limit` at which a job of a class may fit.
    pub fn earliest(
        &mut self,
        class: usize,
        held: &mut HeldTimelines,
        limit: f64,
        now: f64,
    ) -> Option<f64> {
        let (class, home) = self.see(class, held, now);
        let shape = (class.nodes, class.lasts);
        class.windows.begin_at(now);
        let mut found = class.windows.earliest(held, shape, limit);
        let limit = found.unwrap_or(limit);
        let from = class.clear.max(now);
        if from < limit {
            let later = held.room_in(&home.homes.runs, shape, (from, limit));
            class.clear = later.unwrap_or(limit);
            home.clear = home.clear.max(class.clear);
            found = later.or(found);
        }
        class.first = class.clear.min(class.windows.first());
        found
    }

    /// Removes a time at which a job of a class turned out not to fit.
    pub fn pass_over(&mut self, class: usize, held: &HeldTimelines, time: f64) {
        let class = &mut self.classes[class];
        let home = &mut self.homes[class.home];
        class.windows.pass_over(held, time);
        if class.clear <= time {
            let steps = home.homes.runs.iter().map(|run| held.step_after(run, time));
            class.clear = steps.fold(f64::INFINITY, f64::min);
            home.clear = home.clear.max(class.clear);
        }
        class.first = class.clear.min(class.windows.first());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use topolane_fabric::{Fabric, pgft};
    use topolane_placement::{Occupancy, Request};

    use super::{HeldTimelines, LeafRuns, WaitingClasses};

    /// A class stays known while one of its jobs waits, even if it reuses the slot of a dropped class.
    #[test]
    fn a_class_that_came_again_is_not_forgotten() {
        let fabric = Fabric::build(&pgft("n", &[4, 3], &[1, 2], &[1, 1])).unwrap();
        let mut held = HeldTimelines::new(&Occupancy::new(Arc::new(fabric)));
        let mut classes = WaitingClasses::default();
        let class = |classes: &mut WaitingClasses, nodes| {
            classes.of(&Request::whole_nodes(0, nodes, 10.0), LeafRuns::default())
        };
        let first = class(&mut classes, 1);
        assert_ne!(class(&mut classes, 2), first);
        classes.trim(&[None, None], &mut held, 0.0);
        let again = class(&mut classes, 1);
        assert_ne!(again, first, "in the place of the other");
        let last = [0, 1].map(|index| (index == again).then_some(100.0));
        classes.trim(&last, &mut held, 0.0);
        assert_eq!(class(&mut classes, 1), again);
    }
}
