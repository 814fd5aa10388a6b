//! Remembers which jobs would delay the head of the queue if they ran past its reservation.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use topolane_fabric::NodeSet;
use topolane_placement::{Occupancy, Placement, Policy, Request};

use crate::promise::{HeadPromise, number_of};
use crate::running::RunningChange;
use crate::view::View;

/// The most placements that are remembered as in the way of the head.
const REMEMBERED: usize = 1 << 12;

/// Answers for one head at one time, under a policy that never refuses because of more free capacity. A job that is in
/// the head's way stays so until something is freed at that time. A placement found for the head stays valid until
/// another job takes a part of it.
#[derive(Debug)]
pub(crate) struct HeadAnswers {
    head: u64,
    nodes: u32,
    /// The policy that gave the answers.
    rule: usize,
    at: f64,
    /// The number of changes of running jobs, nodes and links that the answers include.
    seen: u64,
    service: u64,
    in_the_way: HashSet<TakenPlacement>,
    own: Option<Own>,
}

/// A placement found for the head, if links can be owned.
#[derive(Debug)]
struct Own {
    placement: Placement,
    nodes: NodeSet,
}

impl HeadAnswers {
    /// Returns the kept answers, updated, or empty ones; `None` if answers may not be remembered.
    pub fn of<'a>(
        kept: &'a mut Option<Self>,
        head: &Request,
        at: f64,
        rule: &dyn Policy,
        view: &View<'_>,
    ) -> Option<&'a mut Self> {
        if !HeadPromise::may_last(head, rule, view) || view.running.any_slowed() {
            *kept = None;
            return None;
        }
        if !kept.as_mut().is_some_and(|kept| kept.follow(head, at, rule, view)) {
            *kept = Some(HeadAnswers {
                head: head.id,
                nodes: head.nodes,
                rule: number_of(rule),
                at,
                seen: view.running.changes(),
                service: view.occupancy.service_changes(),
                in_the_way: HashSet::new(),
                own: None,
            });
        }
        kept.as_mut()
    }

    /// Applies arrivals and departures of jobs. Returns false if the answers are not about this head at this time.
    fn follow(&mut self, head: &Request, at: f64, rule: &dyn Policy, view: &View<'_>) -> bool {
        let (first, last) = (self.at.min(at), self.at.max(at));
        let is_same = self.head == head.id
            && self.nodes == head.nodes
            && self.rule == number_of(rule)
            && self.service == view.occupancy.service_changes()
            && view.running.ending_in(first, last).is_empty();
        if !is_same {
            return false;
        }
        let Some(changes) = view.running.changes_since(self.seen) else { return false };
        // Jobs expected to end before then do not matter.
        for RunningChange { came, placement, .. } in
            changes.filter(|change| change.expected_end > first)
        {
            if !came {
                self.in_the_way.clear();
            } else if self.own.as_ref().is_some_and(|own| !own.is_disjoint_from(placement)) {
                self.own = None;
            }
        }
        self.at = at;
        self.seen = view.running.changes();
        true
    }

    /// Whether the head can be placed while this placement is held; `None` if unknown.
    pub fn knows(&self, placement: &Arc<Placement>) -> Option<bool> {
        if self.own.as_ref().is_some_and(|own| own.is_disjoint_from(placement)) {
            return Some(true);
        }
        self.in_the_way.contains(&TakenPlacement(Arc::clone(placement))).then_some(false)
    }

    /// Asks whether the head can be placed together with this placement, and remembers the answer.
    pub fn learn(
        &mut self,
        head: &Request,
        placement: &Arc<Placement>,
        rule: &dyn Policy,
        then: &Occupancy,
    ) -> bool {
        let found = if rule.dedicates_links().is_some() {
            rule.place(head, then).map(|own| self.own = Some(Own::new(own, then)))
        } else {
            rule.can_place(head, then)
        };
        if found.is_err() {
            if self.in_the_way.len() == REMEMBERED {
                self.in_the_way.clear();
            }
            self.in_the_way.insert(TakenPlacement(Arc::clone(placement)));
        }
        found.is_ok()
    }
}

impl Own {
    fn new(placement: Placement, state: &Occupancy) -> Self {
        let nodes = NodeSet::of(state.fabric().nodes(), placement.held());
        Own { placement, nodes }
    }

    /// Whether another placement shares no node and no link with this one.
    fn is_disjoint_from(&self, other: &Placement) -> bool {
        other.share().is_whole()
            && other.bandwidth_share() >= 1.0
            && !other.held().any(|node| self.nodes.contains(node))
            && are_apart(self.placement.links(), other.links())
    }
}

/// Whether two ascending lists have no number in common.
fn are_apart(one: &[u32], other: &[u32]) -> bool {
    let (mut one, mut other) = (one, other);
    while let (Some(&first), Some(&second)) = (one.first(), other.first()) {
        match first.cmp(&second) {
            std::cmp::Ordering::Less => one = &one[1..],
            std::cmp::Ordering::Greater => other = &other[1..],
            std::cmp::Ordering::Equal => return false,
        }
    }
    true
}

/// The nodes and links that a placement takes.
#[derive(Debug)]
struct TakenPlacement(Arc<Placement>);

impl TakenPlacement {
    fn key(&self) -> impl Hash + Eq + '_ {
        let TakenPlacement(placement) = self;
        (
            placement.nodes(),
            placement.spare(),
            placement.links(),
            placement.bandwidth_share().to_bits(),
        )
    }
}

impl PartialEq for TakenPlacement {
    fn eq(&self, other: &Self) -> bool {
        self.0.share() == other.0.share() && self.key() == other.key()
    }
}

impl Eq for TakenPlacement {}

impl Hash for TakenPlacement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::are_apart;

    /// The result does not depend on where in the lists a common number is.
    #[test]
    fn apart() {
        let sets: [&[u32]; 6] = [&[], &[1], &[2, 5], &[1, 3, 5], &[0, 2, 4, 6], &[7, 8]];
        for one in sets {
            for other in sets {
                let has_common = one.iter().any(|number| other.contains(number));
                assert_eq!(are_apart(one, other), !has_common, "{one:?} {other:?}");
            }
        }
    }
}
