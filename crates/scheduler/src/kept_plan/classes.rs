//! Jobs that ask for the same, and where they may fit.

use std::ops::Range;
use std::sync::Arc;

use topolane_placement::Request;

use super::ROUNDING;
use super::held::Held;
use super::homes::Homes;
use super::windows::{Window, Windows};
use crate::queues::reservation::lasts;
use crate::timeline::Openings;

/// Something was given back.
#[derive(Debug)]
pub(super) struct Opening {
    pub leaves: Range<u32>,
    /// From when to when it was held.
    pub when: (f64, f64),
    /// What is free around it.
    pub openings: Openings,
}

impl Opening {
    pub fn new(leaves: Range<u32>, when: (f64, f64), openings: Openings) -> Self {
        Opening { leaves, when, openings }
    }

    /// All at once, for jobs that cross leaves: the leaves between are opened too.
    fn joined(openings: &[Opening]) -> Option<Opening> {
        let first = openings.first()?;
        let mut all = Opening::new(first.leaves.clone(), first.when, Openings::default());
        all.openings.first = f64::INFINITY;
        for Opening { leaves, openings, .. } in openings {
            all.leaves = all.leaves.start.min(leaves.start)..all.leaves.end.max(leaves.end);
            all.openings.first = all.openings.first.min(openings.first);
            all.openings.longest = all.openings.longest.max(openings.longest);
            all.openings.uncrossed = all.openings.uncrossed.max(openings.uncrossed);
        }
        Some(all)
    }

    /// The earliest start of a job that would use some of it.
    pub fn from(&self, lasts: f64, now: f64) -> f64 {
        self.openings.first.max(self.when.0 - lasts - 1.0).max(now)
    }
}

/// When jobs of the same nodes and walltime may fit, seconds.
#[derive(Debug)]
struct Times {
    lasts: f64,
    /// No time before this one is known at which such a job fits, but in the windows.
    clear: f64,
    /// When it may fit first.
    first: f64,
}

/// Classes of the same nodes.
#[derive(Debug)]
struct Alike {
    nodes: u32,
    homes: Arc<Homes>,
    /// Their indices, by how long they last.
    classes: Vec<usize>,
    /// Of these, those with jobs that have reservations.
    waiting: Vec<usize>,
    /// No class is clear for longer.
    clear: f64,
}

/// Jobs of the same nodes and walltime are a class.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// Of each class.
    times: Vec<Times>,
    windows: Vec<Windows>,
    alike_of: Vec<usize>,
    alike: Vec<Alike>,
}

fn place_of(classes: &[usize], times: &[Times], lasts: f64) -> Result<usize, usize> {
    classes.binary_search_by(|&class| times[class].lasts.total_cmp(&lasts))
}

impl Classes {
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// The class of a request that must lie in these homes.
    pub fn of(&mut self, request: &Request, homes: Homes) -> usize {
        let nodes = request.nodes;
        let known =
            self.alike.iter().position(|alike| alike.nodes == nodes && *alike.homes == homes);
        let alike = known.unwrap_or_else(|| {
            let homes = Arc::new(homes);
            let clear = f64::NEG_INFINITY;
            let (classes, waiting) = (Vec::new(), Vec::new());
            self.alike.push(Alike { nodes, homes, classes, waiting, clear });
            self.alike.len() - 1
        });
        self.with(alike, lasts(request))
    }

    /// The class of jobs that are like those of a class but for how long they last.
    pub fn like(&mut self, class: usize, lasts: f64) -> usize {
        self.with(self.alike_of[class], lasts)
    }

    fn with(&mut self, alike: usize, lasts: f64) -> usize {
        let classes = &mut self.alike[alike].classes;
        match place_of(classes, &self.times, lasts) {
            Ok(place) => classes[place],
            Err(place) => {
                let class = self.times.len();
                classes.insert(place, class);
                let never = f64::NEG_INFINITY;
                self.times.push(Times { lasts, clear: never, first: never });
                self.windows.push(Windows::default());
                self.alike_of.push(alike);
                class
            }
        }
    }

    /// How long jobs of a class last, seconds.
    pub fn lasts(&self, class: usize) -> f64 {
        self.times[class].lasts
    }

    /// The run with a leaf of those in which jobs of a class lie.
    pub fn run_with(&self, class: usize, leaf: u32) -> Option<Range<u32>> {
        let homes = &self.alike[self.alike_of[class]].homes;
        homes.with(&(leaf..leaf + 1)).next().cloned()
    }

    /// Whether a job of a class may fit before a time.
    pub fn may_fit_before(&self, class: usize, start: f64) -> bool {
        self.times[class].first < start
    }

    /// Keeps no more of each class than up to a time of its own; nothing if that is before all times.
    pub fn trim(&mut self, last: &[f64]) {
        for ((times, windows), &last) in self.times.iter_mut().zip(&mut self.windows).zip(last) {
            times.clear = times.clear.min(last);
            windows.trim(times.clear);
            times.first = times.clear.min(windows.first());
        }
        for alike in &mut self.alike {
            alike.waiting.retain(|&class| last[class] > f64::NEG_INFINITY);
            let clear = alike.waiting.iter().map(|&class| self.times[class].clear);
            alike.clear = clear.fold(f64::NEG_INFINITY, f64::max);
        }
    }

    /// Notes where and when jobs may fit since something was given back.
    pub fn open(&mut self, openings: &[Opening], held: &mut Held, now: f64) {
        for opening in openings.iter().filter(|opening| opening.leaves.len() == 1) {
            self.open_leaf(opening, now);
        }
        if let Some(opening) = Opening::joined(openings) {
            self.open_leaves(&opening, held, now);
        }
    }

    /// For jobs that fit on a leaf.
    fn open_leaf(&mut self, opening: &Opening, now: f64) {
        let with_nodes = &opening.openings.with_nodes;
        let earliest = opening.openings.first.max(now);
        let fits =
            |alike: &&Alike| alike.clear > earliest && with_nodes.len() >= alike.nodes as usize;
        for alike in self.alike.iter().filter(fits) {
            let longest = with_nodes[alike.nodes as usize - 1] + ROUNDING;
            let Some(run) = alike.homes.with(&opening.leaves).next() else { continue };
            for &class in &alike.waiting {
                let times = &mut self.times[class];
                if times.lasts > longest {
                    break;
                }
                let from = opening.from(times.lasts, now);
                let until = opening.when.1.min(times.clear);
                if from >= until {
                    continue;
                }
                times.first = times.first.min(from);
                self.windows[class].push(Window { run: run.clone(), from, until });
            }
        }
    }

    /// For jobs that cross leaves.
    fn open_leaves(&mut self, opening: &Opening, held: &mut Held, now: f64) {
        let openings = &opening.openings;
        let crosses = if held.crossing_matters() { openings.uncrossed } else { openings.longest };
        let mut rooms = Rooms::default();
        let earliest = openings.first.max(now);
        for alike in
            self.alike.iter().filter(|alike| !alike.homes.are_leaves && alike.clear > earliest)
        {
            for &class in &alike.waiting {
                let times = &mut self.times[class];
                if times.lasts - ROUNDING > crosses {
                    break;
                }
                let from = opening.from(times.lasts, now);
                let until = opening.when.1.min(times.clear);
                if from >= until {
                    continue;
                }
                for run in alike.homes.with(&opening.leaves) {
                    if rooms.most(opening, held, run, times.lasts) >= alike.nodes {
                        times.first = times.first.min(from);
                        self.windows[class].push(Window { run: run.clone(), from, until });
                    }
                }
            }
        }
    }

    /// The earliest time before `limit` at which a job of a class may fit.
    pub fn earliest(&mut self, class: usize, held: &mut Held, limit: f64, now: f64) -> Option<f64> {
        let alike = &mut self.alike[self.alike_of[class]];
        let (times, windows) = (&mut self.times[class], &mut self.windows[class]);
        let shape = (alike.nodes, times.lasts);
        windows.begin_at(now);
        let mut found = windows.earliest(held, shape, limit);
        let limit = found.unwrap_or(limit);
        let from = times.clear.max(now);
        if from < limit {
            if let Err(place) = place_of(&alike.waiting, &self.times, shape.1) {
                alike.waiting.insert(place, class);
            }
            let later = held.room_in(&alike.homes.runs, shape, (from, limit));
            let times = &mut self.times[class];
            times.clear = later.unwrap_or(limit);
            alike.clear = alike.clear.max(times.clear);
            found = later.or(found);
        }
        let times = &mut self.times[class];
        times.first = times.clear.min(windows.first());
        found
    }

    /// Leaves out a time at which a job of a class has no place.
    pub fn pass_over(&mut self, class: usize, held: &Held, time: f64) {
        let alike = &mut self.alike[self.alike_of[class]];
        let (times, windows) = (&mut self.times[class], &mut self.windows[class]);
        windows.pass_over(held, time);
        if times.clear <= time {
            let steps = alike.homes.runs.iter().map(|run| held.step_after(run, time));
            times.clear = steps.fold(f64::INFINITY, f64::min);
            alike.clear = alike.clear.max(times.clear);
        }
        times.first = times.clear.min(windows.first());
    }
}

/// For how long nodes are free, at least, seconds: for rough answers.
const SPANS: [f64; 4] = [0.0, 3600.0, 4.0 * 3600.0, 12.0 * 3600.0];

/// The most nodes of a run of leaves that are free together for each of [`SPANS`] at a time that meets an opening, on leaves that no
/// job crosses; as far as it was asked.
#[derive(Default)]
struct Rooms(Vec<(Range<u32>, [Option<u32>; SPANS.len()])>);

impl Rooms {
    /// At least as many as for `lasts`.
    fn most(&mut self, opening: &Opening, held: &mut Held, run: &Range<u32>, lasts: f64) -> u32 {
        let span = SPANS.iter().rposition(|&span| span <= lasts).unwrap_or(0);
        let known = self.0.iter().position(|(known, _)| known == run);
        let known = known.unwrap_or_else(|| {
            self.0.push((run.clone(), [None; SPANS.len()]));
            self.0.len() - 1
        });
        let from = opening.openings.first.max(opening.when.0 - SPANS[span] - 1.0);
        let most = &mut self.0[known].1[span];
        *most.get_or_insert_with(|| held.most_room(run, SPANS[span], (from, opening.when.1)))
    }
}
