//! Preemption: which running jobs end for a waiting job or because their nodes fail.

use topolane_fabric::NodeSet;
use topolane_placement::{Attributes, Request};

use super::Slurm;
use super::config::{PreemptBy, PreemptMode};
use super::jobs::{Turn, whose};
use super::start::limited;
use crate::running::RunningJob;
use crate::view::{EndedBy, View};

/// Seconds between two checks of Slurm for jobs that exceed their time.
const LOOKS: f64 = 30.0;

/// The largest value that priorities and nodes have in the order of victims.
const MOST: u32 = 0xffff;

impl Slurm {
    /// How a running job is preempted; `Off` if it cannot be.
    pub(super) fn mode_of(&self, whose: &Attributes) -> PreemptMode {
        let preemption = &self.config.preemption;
        let own = match preemption.by {
            None => return PreemptMode::Off,
            Some(PreemptBy::Qos) => self.qos_of(whose).and_then(|qos| qos.preempt_mode),
            Some(PreemptBy::Partition) => self.parts[self.part(whose)].preempt_mode,
        };
        own.unwrap_or(preemption.mode)
    }

    /// Whether one job is tried before another because it may preempt that one.
    pub(super) fn goes_before(&self, one: &Turn<'_>, other: &Turn<'_>) -> bool {
        match self.config.preemption.by {
            None => false,
            Some(PreemptBy::Qos) => self.qos_preempts(&one.whose, &other.whose),
            Some(PreemptBy::Partition) => {
                let [one, other] = [one, other].map(|turn| &self.parts[turn.standing.part]);
                let meet = match (&one.nodes, &other.nodes) {
                    (Some(one), Some(other)) => one.intersects(other),
                    _ => true,
                };
                meet && one.tier > other.tier
            }
        }
    }

    fn qos_preempts(&self, one: &Attributes, other: &Attributes) -> bool {
        let qos = self.qos_of(one);
        qos.is_some_and(|qos| qos.preempts.iter().any(|name| **name == *other.qos))
    }

    /// The running jobs that a job may preempt, in the order in which Slurm takes them.
    pub(super) fn candidates(&self, view: &View<'_>, turn: &Turn<'_>) -> Vec<RunningJob> {
        let preemption = &self.config.preemption;
        if preemption.by.is_none() || turn.index.is_none() {
            return Vec::new();
        }
        let part = &self.parts[turn.standing.part];
        let gives_way = |job: &&RunningJob| {
            let victim = whose(&job.request);
            let outranked = match preemption.by {
                Some(PreemptBy::Qos) => self.qos_preempts(&turn.whose, &victim),
                _ => self.parts[self.part(&victim)].tier < part.tier,
            };
            let own = self.qos_of(&victim).and_then(|qos| qos.preempt_exempt);
            outranked
                && self.mode_of(&victim) != PreemptMode::Off
                && view.now >= job.start + own.unwrap_or(preemption.exempt)
                && part.nodes.as_ref().is_none_or(|nodes| holds_some(job, nodes))
        };
        let mut found: Vec<RunningJob> =
            view.running.jobs().iter().filter(gives_way).cloned().collect();
        found.sort_by_key(|job| job.id);
        if preemption.youngest_first {
            found.sort_by(|a, b| b.start.total_cmp(&a.start));
        } else {
            found.sort_by_key(|job| self.rank(job));
        }
        found
    }

    /// The sort key of victims: low QOS or tier first, then few nodes.
    fn rank(&self, job: &RunningJob) -> (u32, u32) {
        let victim = whose(&job.request);
        let priority = match self.config.preemption.by {
            Some(PreemptBy::Qos) => self
                .qos_of(&victim)
                .map_or(0, |qos| qos.priority.clamp(0.0, f64::from(MOST)) as u32),
            _ => self.parts[self.part(&victim)].tier.min(MOST),
        };
        (priority, (job.placement.nodes().len() as u32).min(MOST))
    }

    /// Preempts running jobs for one on some of these nodes; it starts when they are cleaned up. Returns the nodes that
    /// become free: none if that would not be enough, or if the job preempted others recently.
    pub(super) fn make_room(
        &mut self,
        view: &mut View<'_>,
        turn: &Turn<'_>,
        nodes: &NodeSet,
    ) -> NodeSet {
        let mut left = NodeSet::empty(nodes.capacity());
        let again = turn.standing.preempted + self.config.preemption.again;
        let candidates = self.candidates(view, turn);
        if view.now < again || candidates.is_empty() {
            return left;
        }
        let mut nodes = nodes.clone();
        self.completing.iter().for_each(|(_, leaving)| nodes.subtract(leaving));
        let request = limited(turn.request, nodes.clone());
        let victims = self.victims(view, &request, &nodes, candidates);
        for victim in &victims {
            let held = victim.placement.held();
            left.unite(&NodeSet::of(nodes.capacity(), held));
            let grace = self.grace_of(&whose(&victim.request));
            if grace > 0.0 {
                self.give_grace(view, victim, view.now + grace);
            } else {
                self.end_early(view, victim, EndedBy::Preemption);
            }
        }
        if let Some(standing) =
            self.waiting.get_mut(&turn.request.id).filter(|_| !victims.is_empty())
        {
            standing.preempted = view.now;
        }
        left
    }

    /// Ends a running job. It is requeued, unless it is cancelled or its user asked not to requeue it.
    pub(super) fn end_early(&mut self, view: &mut View<'_>, job: &RunningJob, by: EndedBy) {
        let whose = whose(&job.request);
        let is_cancelled = by == EndedBy::Preemption && self.mode_of(&whose) == PreemptMode::Cancel;
        let again = view.now + self.config.schedulers.requeue_after;
        view.end_early(job.id, (!is_cancelled && !whose.no_requeue).then_some(again), by);
        if let Some(ran) = self.running.remove(&job.id) {
            self.held.remove(&ran.whose, &ran.nodes);
            self.charge(&ran, view.now);
            self.clean_up(ran.nodes, view.now);
        }
    }

    /// How long a preempted job keeps its nodes, in seconds.
    fn grace_of(&self, whose: &Attributes) -> f64 {
        match self.config.preemption.by {
            Some(PreemptBy::Qos) => self.qos_of(whose).map_or(0.0, |qos| qos.grace),
            _ => self.parts[self.part(whose)].grace,
        }
    }

    /// Gives a preempted job until this time to end, once.
    fn give_grace(&mut self, view: &mut View<'_>, job: &RunningJob, until: f64) {
        if let Some(ran) = self.running.get_mut(&job.id).filter(|ran| ran.leaves.is_infinite()) {
            ran.leaves = until;
            view.set_expected_end(job.id, job.expected_end.min(until));
        }
    }

    /// Ends the jobs whose grace time was over at Slurm's last check.
    pub(super) fn end_graces(&mut self, view: &mut View<'_>) {
        if self.config.preemption.by.is_none() {
            return;
        }
        let looked = self.last_due(LOOKS, view.now);
        let is_over =
            |job: &&RunningJob| self.running.get(&job.id).is_some_and(|ran| ran.leaves <= looked);
        let over: Vec<RunningJob> = view.running.jobs().iter().filter(is_over).cloned().collect();
        for job in &over {
            self.end_early(view, job, EndedBy::Preemption);
        }
    }

    /// The time of Slurm's first check after the end of a grace time.
    pub(super) fn next_grace_end(&self) -> Option<f64> {
        self.config.preemption.by?;
        let leaves = self.running.values().map(|ran| ran.leaves).min_by(f64::total_cmp)?;
        let look = self.last_due(LOOKS, leaves);
        leaves.is_finite().then_some(if look < leaves { look + LOOKS } else { look })
    }

    /// Lets nodes fail that are due to fail by now: the jobs on them end.
    pub(super) fn fail_nodes(&mut self, view: &mut View<'_>) {
        while let Some(kept) = self.failing.pop_front() {
            if kept.from > view.now {
                self.failing.push_front(kept);
                return;
            }
            let is_hit = |job: &&RunningJob| job.start < kept.from && holds_some(job, &kept.nodes);
            let hit: Vec<RunningJob> = view.running.jobs().iter().filter(is_hit).cloned().collect();
            for job in &hit {
                self.end_early(view, job, EndedBy::NodeFailure);
            }
        }
    }

    /// The jobs to preempt, found as Slurm does. It removes candidates one by one until the job fits. Then it puts the
    /// last one first, orders the others by how many of the job's nodes they hold, and searches again, `reorder` times
    /// plus once more.
    fn victims(
        &self,
        view: &View<'_>,
        request: &Request,
        nodes: &NodeSet,
        mut candidates: Vec<RunningJob>,
    ) -> Vec<RunningJob> {
        let most = (self.config.preemption.reorder + 2).min(candidates.len());
        for pass in 1.. {
            let mut state = view.occupancy.clone();
            let fits = candidates.iter().enumerate().find_map(|(place, job)| {
                if !holds_some(job, nodes) {
                    return None;
                }
                state.release(&job.placement);
                let placement = view.policy.place(request, &state).ok()?;
                Some((place, NodeSet::of(nodes.capacity(), placement.held())))
            });
            let Some((last, chosen)) = fits else { break };
            if pass >= most {
                candidates.truncate(last + 1);
                candidates.retain(|job| holds_some(job, &chosen));
                return candidates;
            }
            let of_chosen = |job: &RunningJob| {
                job.placement.held().filter(|&node| chosen.contains(node)).count()
            };
            let rest = candidates.split_off(last + 1);
            let first = candidates.split_off(last);
            candidates.sort_by_key(|job| std::cmp::Reverse(of_chosen(job)));
            // Candidates without any of the job's nodes come after the others, next to `rest`.
            candidates = first.into_iter().chain(candidates).chain(rest).collect();
        }
        Vec::new()
    }
}

fn holds_some(job: &RunningJob, nodes: &NodeSet) -> bool {
    job.placement.held().any(|node| nodes.contains(node))
}
