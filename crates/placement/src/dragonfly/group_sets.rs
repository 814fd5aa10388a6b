//! Which groups of a dragonfly a job gets.

use topolane_fabric::LinkSet;

use super::Search;
use super::group_room::{GroupRoom, Part};
use crate::detours::Spread;
use crate::promise::Promise;

/// The most steps of one search.
const MOST_STEPS: u32 = 20_000;
/// The fewest steps for which a set counts that is looked at as a whole; a larger one counts a step for each group.
const STEPS_OF_A_SET: u32 = 20;
/// The same where lanes are chosen, which takes longer.
const STEPS_WITH_LANES: u32 = 400;
/// The most steps after the first set was found.
const MOST_STEPS_AFTER: u32 = 4_000;

/// A search for sets of groups such that no other job uses the links between them.
pub(super) struct GroupSets<'a> {
    pub(super) search: &'a Search<'a>,
    pub(super) rooms: &'a [GroupRoom<'a>],
    /// What each room has for a job that is in no other group.
    pub(super) alone: Vec<Part>,
    /// Index of each room and the most slots that it has, those with most first.
    order: Vec<(usize, u32)>,
    steps_left: u32,
    /// Of the best set: the gateways that it leaves to others and the slots that it has; its parts, and its lanes if it owns
    /// some.
    best: Option<((u32, u32), Vec<Part>, LinkSet)>,
}

impl<'a> GroupSets<'a> {
    pub fn new(search: &'a Search<'a>, rooms: &'a [GroupRoom<'a>]) -> Self {
        let part = |(number, room): (usize, &GroupRoom<'_>)| room.part(number, 0);
        let alone: Vec<Part> = rooms.iter().enumerate().map(part).collect();
        let mut order: Vec<(usize, u32)> =
            alone.iter().map(|part| (part.room, part.most)).collect();
        order.sort_by_key(|&(room, most)| (std::cmp::Reverse(most), room));
        GroupSets { search, rooms, alone, order, steps_left: MOST_STEPS, best: None }
    }

    /// Returns the parts of a smallest set of several groups with enough slots, to be filled in this order: of these the
    /// one that leaves the fewest gateways to others, then the one with the fewest slots.
    pub fn best(mut self) -> Option<(Vec<Part>, LinkSet)> {
        for size in 2..=self.order.len() {
            self.extend(0, &mut Vec::with_capacity(size), 0, size);
            if let Some((_, parts, lanes)) = self.best {
                return Some((parts, lanes));
            }
        }
        if self.steps_left == 0 {
            self.search.is_exact.set(false);
        }
        None
    }

    /// Tries all sets that add `left` of the rooms from place `from` on to `chosen`, which have `slots`.
    fn extend(&mut self, from: usize, chosen: &mut Vec<usize>, slots: u32, left: usize) {
        if left == 0 {
            let steps = match self.search.promise {
                Promise::OwnCables { .. } => STEPS_WITH_LANES,
                Promise::BetweenGroups | Promise::AllLinks => STEPS_OF_A_SET,
            };
            let steps = steps.max(chosen.len() as u32);
            self.steps_left = self.steps_left.saturating_sub(steps);
            self.judge(chosen);
            return;
        }
        for at in from..self.order.len() {
            let next = self.order[at..].iter().take(left).map(|&(_, most)| most).sum::<u32>();
            let is_best = self.best.as_ref().is_some_and(|best| best.0 == (0, self.search.wanted));
            if slots + next < self.search.wanted || self.steps_left == 0 || is_best {
                return;
            }
            self.steps_left -= 1;
            let (room, most) = self.order[at];
            if chosen.iter().all(|&other| self.are_apart(other, room)) {
                chosen.push(room);
                self.extend(at + 1, chosen, slots + most, left - 1);
                chosen.pop();
            }
        }
    }

    /// The rooms, those with most free slots first.
    pub fn by_slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.order.iter().map(|&(room, _)| room)
    }

    /// What each room of a set has for a job that is in all of them.
    pub fn parts_of(&self, chosen: &[usize]) -> Vec<Part> {
        let groups = || chosen.iter().map(|&room| self.rooms[room].group());
        let part = |&room: &usize| {
            let gates = self.search.dragonfly.gates_to(self.rooms[room].group(), groups());
            self.rooms[room].part(room, gates)
        };
        chosen.iter().map(part).collect()
    }

    /// Whether no other job uses the links between two groups; for a job that owns lanes, whether one is free.
    pub fn are_apart(&self, a: usize, b: usize) -> bool {
        let used = |word| self.search.links.between.word(word);
        let (a, b) = (self.rooms[a].group(), self.rooms[b].group());
        let dragonfly = self.search.dragonfly;
        match self.search.promise {
            Promise::BetweenGroups | Promise::AllLinks => !dragonfly.is_used_between(a, b, &used),
            Promise::OwnCables { .. } => dragonfly.has_free_lane(a, b, &used),
        }
    }

    /// Whether all jobs keep their shares of cables on which detours meet, if the job fills these parts in order.
    fn leaves_shares(&self, parts: &[Part]) -> bool {
        if self.search.links.detours.is_none() {
            return true;
        }
        let mut left = self.search.wanted;
        let filled = parts.iter().map(|part| {
            let slots = part.most.min(left);
            left -= slots;
            (self.rooms[part.room].group(), slots)
        });
        let spread = Spread::of_parts(filled);
        self.search.links.leave_shares(spread.as_ref())
    }

    /// Keeps the parts of a set if they have enough slots and are better than the best so far.
    fn judge(&mut self, chosen: &[usize]) {
        let (mut parts, lanes) = match self.search.promise {
            Promise::BetweenGroups | Promise::AllLinks => {
                (self.parts_of(chosen), LinkSet::default())
            }
            Promise::OwnCables { share } => match self.parts_with_lanes(chosen, share) {
                Some(found) => found,
                None => return,
            },
        };
        let slots: u32 = parts.iter().map(|part| part.most).sum();
        if slots < self.search.wanted {
            return;
        }
        parts.sort_by_key(|part| part.most);
        if !self.leaves_shares(&parts) {
            // Other numbers of nodes in the same groups could do.
            self.search.is_exact.set(false);
            return;
        }
        let mut left = self.search.wanted;
        let exposed = parts.iter().map(|part| {
            let exposed = self.rooms[part.room].exposed(part, left);
            left -= part.most.min(left);
            exposed
        });
        let price = match self.search.promise {
            Promise::BetweenGroups => (0, slots),
            Promise::AllLinks | Promise::OwnCables { .. } => (exposed.sum(), slots),
        };
        if self.best.as_ref().is_none_or(|best| price < best.0) {
            self.best = Some((price, parts, lanes));
            self.steps_left = self.steps_left.min(MOST_STEPS_AFTER);
        }
    }
}
