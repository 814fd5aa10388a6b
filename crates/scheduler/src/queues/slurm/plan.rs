//! The plan of backfill: which nodes are promised to waiting jobs, and when.

use std::sync::Arc;

use topolane_fabric::NodeSet;
use topolane_placement::Attributes;

use super::licenses::{AskedLicenses, Licenses};

/// The nodes and licences without a promise during one time slot.
#[derive(Debug, Clone)]
struct Slot {
    begin: f64,
    end: f64,
    free: NodeSet,
    licenses: Licenses,
}

/// Time slots from now to the end of the window, in order and without gaps.
#[derive(Debug, Clone)]
pub(super) struct BackfillPlan {
    slots: Vec<Slot>,
}

impl BackfillPlan {
    /// Returns a plan with one slot and no promises.
    pub fn new(begin: f64, end: f64, free: NodeSet, licenses: Licenses) -> Self {
        BackfillPlan { slots: vec![Slot { begin, end, free, licenses }] }
    }

    /// Removes from `nodes` those that are promised at any time from `start` to `end`. Returns the first time after
    /// `start` at which other nodes are free; `None` if that never changes.
    pub fn keep_free(&self, nodes: &mut NodeSet, start: f64, end: f64) -> Option<f64> {
        let mut later = None;
        let wanted = nodes.clone();
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.end <= start {
                continue;
            }
            let next = self.slots.get(index + 1);
            let gains = |kept: &NodeSet| {
                next.is_some_and(|next| wanted.intersects_outside(&next.free, kept))
                    .then_some(slot.end)
            };
            if slot.begin > end {
                let mut kept = nodes.clone();
                kept.intersect(&slot.free);
                // Slots that begin after the end are not examined one by one.
                let next = next.filter(|_| index + 2 < self.slots.len());
                return later.or_else(|| gains(&kept)).or(next.map(|next| next.end));
            }
            nodes.intersect(&slot.free);
            later = later.or_else(|| gains(nodes));
        }
        later
    }

    /// When the job's licences, promised to others between `start` and `end`, are free again; `None` if none are
    /// promised.
    pub fn licenses_later(&self, whose: &Attributes, start: f64, end: f64) -> Option<f64> {
        let meets = |slot: &&Slot| slot.end > start && slot.begin <= end;
        let lacking =
            self.slots.iter().filter(meets).rfind(|slot| !slot.licenses.suffice_for(whose));
        lacking.map(|slot| slot.end)
    }

    /// Whether no job was promised these nodes or the job's licences from `start` to `end`.
    pub fn is_free(&self, nodes: &NodeSet, whose: &Attributes, start: f64, end: f64) -> bool {
        let meets = |slot: &&Slot| slot.end > start && slot.begin < end;
        let is_free = |slot: &Slot| nodes.is_within(&slot.free) && slot.licenses.suffice_for(whose);
        self.slots.iter().filter(meets).all(is_free)
    }

    /// Promises these nodes and the job's licences from `start` to `end`, at least for `step`.
    pub fn promise(&mut self, nodes: &NodeSet, whose: &Attributes, span: (f64, f64), step: f64) {
        self.change(span, step, |slot| {
            slot.free.subtract(nodes);
            slot.licenses.take_for(whose);
        });
    }

    /// Keeps licences for the jobs of a reservation from `start` to `end`, at least for `step`.
    pub fn reserve(
        &mut self,
        reservation: &Arc<str>,
        licenses: &AskedLicenses,
        span: (f64, f64),
        step: f64,
    ) {
        self.change(span, step, |slot| slot.licenses.reserve(reservation, licenses));
    }

    /// Changes what is free from `start` to `end`. As in Slurm, a change that begins or ends at a slot boundary leaves
    /// an empty slot there, and at most two equal neighbours are merged.
    fn change(&mut self, (start, end): (f64, f64), step: f64, change: impl Fn(&mut Slot)) {
        let start = start.max(self.slots[0].begin);
        let end = end.max(start + step);
        let Some(before) = self.slots.iter().position(|slot| slot.end >= start) else { return };
        if self.slots[before].end > start {
            self.cut(before, start);
        }
        let mut index = before + 1;
        while index < self.slots.len() {
            if self.slots[index].end > end {
                self.cut(index, end);
            }
            change(&mut self.slots[index]);
            if self.slots[index].end >= end {
                break;
            }
            index += 1;
        }
        let touched = before.saturating_sub(1)..(index + 1).min(self.slots.len() - 1);
        for index in touched {
            let [one, next] = [index, index + 1].map(|index| &self.slots[index]);
            if one.free == next.free && one.licenses == next.licenses {
                self.slots[index].end = self.slots[index + 1].end;
                self.slots.remove(index + 1);
                break;
            }
        }
    }

    /// Splits a slot in two at a time.
    fn cut(&mut self, index: usize, time: f64) {
        let rest = Slot { begin: time, ..self.slots[index].clone() };
        self.slots[index].end = time;
        self.slots.insert(index + 1, rest);
    }
}
