//! What partitions, reservations and times out of service withhold from a job.

use std::sync::Arc;

use topolane_fabric::{Fabric, InputError, NodeSet};
use topolane_placement::{Attributes, Request};

use super::Slurm;
use super::config::{Partition, PreemptMode, Withheld, nodes_of};
use super::jobs::Turn;
use super::licenses;
use crate::view::View;

/// The nodes and tier of a partition, and how its jobs are preempted.
#[derive(Debug, Clone, Default)]
pub(super) struct PartitionNodes {
    /// The nodes of the partition; `None` for all.
    pub nodes: Option<NodeSet>,
    pub tier: u32,
    pub preempt_mode: Option<PreemptMode>,
    pub grace: f64,
}

/// Nodes and licences that are withheld for a time.
#[derive(Debug, Clone)]
pub(super) struct WithheldNodes {
    pub name: Arc<str>,
    pub nodes: NodeSet,
    /// Whether this is a reservation without nodes, whose jobs may run on any node.
    pub is_of_any: bool,
    pub licenses: Vec<(Arc<str>, u64)>,
    pub from: f64,
    pub until: f64,
}

impl PartitionNodes {
    /// Returns a partition of the configuration, on a machine.
    ///
    /// # Errors
    /// A hostlist that cannot be read, or no node of the machine.
    pub fn of(partition: &Partition, fabric: &Fabric) -> Result<Self, InputError> {
        let in_partition =
            |message: String| InputError::whole(format!("partition {}: {message}", partition.name));
        let nodes = partition.nodes.as_deref().map(|text| nodes_of(text, fabric)).transpose();
        let nodes = nodes.map_err(|error| in_partition(error.message))?;
        if nodes.as_ref().is_some_and(|nodes| nodes.count() == 0) {
            let message = format!("machine {} has none of its nodes", fabric.name());
            return Err(in_partition(message));
        }
        let Partition { tier, preempt_mode, grace, .. } = *partition;
        Ok(PartitionNodes { nodes, tier, preempt_mode, grace })
    }
}

impl WithheldNodes {
    /// Returns everything withheld by the configuration, on a machine.
    ///
    /// # Errors
    /// A hostlist that cannot be read.
    pub fn all<'a>(
        withheld: impl IntoIterator<Item = &'a Withheld>,
        fabric: &Fabric,
    ) -> Result<Vec<Self>, InputError> {
        let kept = |one: &Withheld| {
            Ok(WithheldNodes {
                name: Arc::from(&*one.name),
                nodes: nodes_of(&one.nodes, fabric)?,
                is_of_any: one.nodes.is_empty(),
                licenses: licenses::named(&one.licenses),
                from: one.from,
                until: one.until.unwrap_or(f64::INFINITY),
            })
        };
        withheld.into_iter().map(kept).collect()
    }

    /// Whether it applies at any time from `start` to before `end`, or at `start` if `end` is not later.
    pub fn meets(&self, start: f64, end: f64) -> bool {
        (self.from < end || self.from <= start) && self.until > start
    }
}

impl Slurm {
    /// The index of a job's partition.
    pub(super) fn part(&self, whose: &Attributes) -> usize {
        self.part_of.get(&*whose.partition).copied().unwrap_or(0)
    }

    /// The nodes in service now, both in the replay and in the records.
    pub(super) fn usable(&self, view: &View<'_>) -> NodeSet {
        let mut nodes = view.occupancy.in_service().clone();
        for kept in self.out.iter().filter(|kept| kept.meets(view.now, view.now)) {
            nodes.subtract(&kept.nodes);
        }
        nodes
    }

    /// Keeps only those of `nodes` that a job may use from `start` to `end`: nodes of its partition outside
    /// reservations, or nodes of its own reservation. Returns whether a reservation removed any; `None` if the job's
    /// reservation does not apply then.
    pub(super) fn keep_allowed(
        &self,
        nodes: &mut NodeSet,
        turn: &Turn<'_>,
        (start, end): (f64, f64),
    ) -> Option<bool> {
        if let Some(part) = &self.parts[turn.standing.part].nodes {
            nodes.intersect(part);
        }
        let own = &turn.whose.reservation;
        let mut is_reduced = false;
        let mut has_own = false;
        for kept in &self.reservations {
            if !own.is_empty() && kept.name == *own {
                has_own |= kept.from <= start && start <= kept.until;
                if !kept.is_of_any {
                    nodes.intersect(&kept.nodes);
                }
            } else if kept.meets(start, end) {
                is_reduced |= nodes.intersects(&kept.nodes);
                nodes.subtract(&kept.nodes);
            }
        }
        let knows_own = self.reservations.iter().any(|kept| kept.name == *own);
        (own.is_empty() || !knows_own || has_own).then_some(is_reduced)
    }

    /// The licences that must be free for a job to run from `start` on: its own, plus those of the same names that
    /// other reservations hold at that time. Slurm counts them in `job_test_lic_resv`.
    pub(super) fn licenses_with_reservations(
        &self,
        request: &Request,
        whose: &Attributes,
        start: f64,
    ) -> Vec<(Arc<str>, u64)> {
        let end = start + request.walltime;
        let mut needed = whose.licenses.clone();
        let is_other =
            |kept: &&WithheldNodes| whose.reservation.is_empty() || kept.name != whose.reservation;
        let others = self.reservations.iter().filter(is_other);
        for kept in others.filter(|kept| kept.meets(start, end)) {
            for (name, number) in &kept.licenses {
                if let Some((_, sum)) = needed.iter_mut().find(|(asked, _)| asked == name) {
                    *sum = sum.saturating_add(*number);
                }
            }
        }
        needed
    }

    /// Whether the licences of a job that starts at `start` are free, apart from those that reservations hold.
    pub(super) fn has_licenses(&self, request: &Request, whose: &Attributes, start: f64) -> bool {
        whose.licenses.is_empty()
            || self.held.licenses.suffice(&self.licenses_with_reservations(request, whose, start))
    }

    /// The first time after `now` at which a reservation or a time out of service begins or ends.
    pub(super) fn next_change(&self, now: f64) -> Option<f64> {
        let kept = self.reservations.iter().chain(&self.out);
        let times = kept.flat_map(|kept| [kept.from, kept.until]);
        times.filter(|&time| time > now && time.is_finite()).min_by(f64::total_cmp)
    }
}
