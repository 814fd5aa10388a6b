//! Slurm's main scheduler.

use std::sync::Arc;

use topolane_fabric::NodeSet;
use topolane_placement::Refusal;

use super::Slurm;
use crate::view::View;

impl Slurm {
    /// Runs the main scheduler if it is due, as Slurm's main loop does. It uses what happened before this second, and
    /// the jobs that it finds eligible now.
    pub(super) fn run_main_if_due(&mut self, view: &mut View<'_>) -> Option<(u64, Refusal)> {
        let now = view.now;
        let is_full = now >= self.clock.last_full + self.config.schedulers.interval;
        if !is_full && now < self.clock.main {
            return None;
        }
        for waiting in view.waiting {
            if waiting.begin > 0.0 && waiting.begin <= now {
                self.arrive(&waiting.request, now);
            }
        }
        // With an empty queue, the main scheduler counts as run on time even if no pass was requested.
        let is_idle = self.waiting.is_empty();
        self.clock.last_main = if is_idle { self.clock.main.min(now) } else { now };
        self.clock.main = f64::INFINITY;
        if is_full {
            self.clock.last_full = self.last_due(self.config.schedulers.interval, now);
        }
        if is_idle {
            return None;
        }
        let refusal = self.run_main(view, is_full);
        self.note_change(now);
        refusal
    }

    /// Starts each job in order where it fits. The first job of a partition that does not fit closes the partition with
    /// all its nodes; the same holds for a reservation.
    pub(super) fn run_main(
        &mut self,
        view: &mut View<'_>,
        is_full: bool,
    ) -> Option<(u64, Refusal)> {
        let never = Arc::clone(&self.never);
        let turns = self.turns(view, &never);
        if turns.is_empty() {
            return None;
        }
        let mut open = self.usable(view);
        let mut leaving = NodeSet::empty(open.capacity());
        let completing = self.completing.iter().map(|(_, nodes)| nodes);
        let gone = self.gone(view);
        let gone = gone.iter().map(|id| &self.running[id].nodes);
        completing.chain(gone).for_each(|nodes| leaving.unite(nodes));
        let mut is_closed = vec![false; self.parts.len()];
        let mut closed_reservations: Vec<Arc<str>> = Vec::new();
        let mut first = None;
        let depth = if is_full { usize::MAX } else { self.config.schedulers.depth };
        for turn in turns.into_iter().take(depth) {
            let request = turn.request;
            let own = &turn.whose.reservation;
            let is_reserved = !own.is_empty();
            if is_closed[turn.standing.part] && !is_reserved || closed_reservations.contains(own) {
                continue;
            }
            let mut nodes = open.clone();
            let span = (view.now, view.now + request.walltime);
            let Some(is_reduced) = self.keep_allowed(&mut nodes, &turn, span) else { continue };
            if !self.held.admits(&turn.whose, request.nodes)
                || is_reduced && nodes.count() < request.nodes
            {
                continue;
            }
            if nodes.count() >= request.nodes && !self.has_licenses(request, &turn.whose, view.now)
            {
                if self.config.schedulers.backfill_licenses {
                    break;
                }
                continue;
            }
            nodes.subtract(&leaving);
            let room = self.config.preemption.by.map(|_| nodes.clone());
            if let Err(refusal) = self.start(view, &turn, nodes) {
                if let Some(nodes) = room {
                    leaving.unite(&self.make_room(view, &turn, &nodes));
                }
                first.get_or_insert((request.id, refusal));
                if is_reserved {
                    closed_reservations.push(Arc::clone(own));
                    continue;
                }
                is_closed[turn.standing.part] = true;
                match &self.parts[turn.standing.part].nodes {
                    Some(part) => open.subtract(part),
                    None => open = NodeSet::empty(open.capacity()),
                }
            }
        }
        first
    }
}
