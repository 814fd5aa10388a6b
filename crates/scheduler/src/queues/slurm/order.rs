//! The order in which both schedulers examine the waiting jobs.

use topolane_placement::Request;

use super::Slurm;
use super::jobs::{Never, Turn, whose};
use crate::view::View;

impl Slurm {
    /// The waiting jobs in the order of both schedulers: those in reservations first, then by tier, priority and
    /// submission (`sort_job_queue2` of Slurm).
    pub(super) fn turns<'a>(&self, view: &View<'a>, never: &'a [Never]) -> Vec<Turn<'a>> {
        let turn = |index: Option<usize>, request: &'a Request| {
            let standing = *self.waiting.get(&request.id)?;
            let turn = Turn { index, request, whose: whose(request), standing };
            (standing.seen <= view.now).then_some(turn)
        };
        let waiting = view.waiting.iter().enumerate();
        let mut turns: Vec<Turn<'a>> = waiting
            .filter(|&(index, _)| view.is_visible(index) && !view.has_started(index))
            .filter_map(|(index, waiting)| turn(Some(index), &waiting.request))
            .collect();
        let never = self.never_waiting.iter().map(|&place| &never[place]);
        let never = never.filter(|never| view.now < never.until);
        turns.extend(never.filter_map(|never| turn(None, &never.request)));
        let key = |turn: &Turn<'_>| {
            (!turn.whose.reservation.is_empty(), self.parts[turn.standing.part].tier)
        };
        let order = |a: &Turn<'_>, b: &Turn<'_>| {
            let by_priority = b.standing.priority.total_cmp(&a.standing.priority);
            let by_place = a.place().total_cmp(&b.place());
            let by_age = a.standing.since.total_cmp(&b.standing.since);
            key(b).cmp(&key(a)).then(by_priority).then(by_place).then(by_age)
        };
        if self.config.preemption.by.is_none() {
            turns.sort_by(order);
            return turns;
        }
        // Slurm sorts its list of jobs, which has the order of their numbers, whenever they became eligible.
        turns.sort_by(|a, b| a.place().total_cmp(&b.place()));
        merge_sort(turns, &|a, b| {
            self.goes_before(a, b) || !self.goes_before(b, a) && order(a, b).is_le()
        })
    }
}

/// Sorts as the list code of Slurm does. "May preempt" is not a consistent order, so the result depends on the steps of
/// the algorithm.
fn merge_sort<T>(mut turns: Vec<T>, is_first: &impl Fn(&T, &T) -> bool) -> Vec<T> {
    if turns.len() < 2 {
        return turns;
    }
    let second = turns.split_off(turns.len() / 2);
    let [first, second] = [turns, second].map(|half| merge_sort(half, is_first));
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    let mut sorted = Vec::with_capacity(first.len() + second.len());
    while let (Some(one), Some(other)) = (first.peek(), second.peek()) {
        let next = if is_first(one, other) { first.next() } else { second.next() };
        sorted.extend(next);
    }
    sorted.extend(first);
    sorted.extend(second);
    sorted
}
