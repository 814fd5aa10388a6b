//! Checks whether nodes and cables meet the condition that docs/explanation/dedicated-links.md proves to be sufficient.

mod common;
pub mod need;
mod partition;
pub mod violation;

use topolane_fabric::{CableId, Fabric, NodeIndex};

use crate::dedicated::condition::common::{Common, all_common, count, lacking_pair};
use crate::dedicated::condition::need::Need;
use crate::dedicated::condition::partition::{Cables, NetworkPartition, PodPart};
use crate::dedicated::condition::violation::Violation;

/// Checks that a job on these nodes gets the share `bandwidth_share` of full bandwidth (over 0, up to 1) from the
/// cables it owns, by the condition of docs/explanation/dedicated-links.md. Extra cables do no harm. On a machine with
/// rails, the cables of every rail must meet the condition on their own.
///
/// # Errors
/// Says which nodes or cables are not on the machine, or where the job owns too few.
pub fn check(
    fabric: &Fabric,
    nodes: &[NodeIndex],
    links: &[CableId],
    bandwidth_share: f64,
) -> Result<(), Violation> {
    let site = nodes.first().filter(|&&node| node < fabric.nodes());
    let rails = site.map_or(1, |&node| fabric.rails(fabric.site_of_group(0, node)));
    (0..rails).try_for_each(|rail| check_rail(fabric, nodes, links, bandwidth_share, rail))
}

fn check_rail(
    fabric: &Fabric,
    nodes: &[NodeIndex],
    links: &[CableId],
    bandwidth_share: f64,
    rail: u32,
) -> Result<(), Violation> {
    let job = NetworkPartition::of(fabric, nodes, links, rail)?;
    if job.leaves.len() < 2 {
        return Ok(());
    }
    if job.pods.len() > 1 {
        let same = |top| job.pods.iter().all(|part| fabric.parent(2, part.pod) == top);
        if fabric.depth() < 3 || !same(fabric.parent(2, job.pods[0].pod)) {
            return Err(Violation::TooFar);
        }
    }
    Checked { need: Need::new(fabric, job.nodes, bandwidth_share), job: &job }.check()
}

/// The nodes and cables of a job, and the number of links that it needs.
struct Checked<'a> {
    job: &'a NetworkPartition,
    need: Need,
}

impl Checked<'_> {
    /// Tries each set of cables that leaves own in common, then checks every pair of leaves on its own.
    fn check(&self) -> Result<(), Violation> {
        let cables: Vec<&Cables> = self.job.leaves.iter().map(|part| &part.cables).collect();
        let mut reason = None;
        for common in all_common(&cables) {
            match self.in_common(common) {
                Ok(()) => return Ok(()),
                // A violation in a pod is more specific than one on a leaf, so report that.
                Err(found @ Violation::Pod { .. }) => reason = Some(found),
                Err(found) => reason = reason.or(Some(found)),
            }
        }
        let found = self.by_pairs(&cables);
        if found.is_err() { Err(reason.unwrap_or(Violation::TooFar)) } else { Ok(()) }
    }

    /// Checks conditions (1) to (4) for one set of common cables. If a plane has too few links to the core, gives up a
    /// cable towards that plane and tries again.
    fn in_common(&self, mut common: Common) -> Result<(), Violation> {
        let mut narrow = None;
        loop {
            self.leaves(&common).map_err(|lacking| narrow.unwrap_or(lacking))?;
            let Err((plane, reason)) = self.core(|plane| self.core_needed(&common, plane)) else {
                return Ok(());
            };
            narrow = narrow.or(Some(reason));
            if !common.give_up(plane) {
                return Err(reason);
            }
        }
    }

    /// Checks the leaves: condition (1) for every leaf outside the remainder, (2) for the remainder.
    fn leaves(&self, common: &Common) -> Result<(), Violation> {
        let mut flows = 0;
        for (part, &is_rest) in self.job.leaves.iter().zip(&common.remainder) {
            let needed = self.need.slots(part.nodes);
            if is_rest {
                flows += self.need.flows(part.nodes);
            } else if count(&common.all) < needed {
                let common = count(&common.all);
                return Err(Violation::Leaf { leaf: part.leaf, needed, common });
            }
        }
        let (needed, common_part) = (self.need.remainder(flows), count(&common.part));
        let first = self.job.leaves.iter().zip(&common.remainder).find(|&(_, &is_rest)| is_rest);
        match first {
            Some((part, _)) if common_part < needed => {
                Err(Violation::Leaf { leaf: part.leaf, needed, common: common_part })
            }
            _ => Ok(()),
        }
    }

    /// The uplinks to the core that each pod needs in a plane, by condition (3), or by (4) if there is a remainder.
    fn core_needed(&self, common: &Common, plane: usize) -> Vec<u32> {
        let slots = count(&common.all);
        let (all, part) = (common.all[plane], common.part[plane]);
        if !common.remainder.contains(&true) {
            return self
                .job
                .pods
                .iter()
                .map(|pod| all * self.need.core(pod.nodes, slots))
                .collect();
        }
        let members = |at: usize, rest: bool| {
            let leaves = self.job.leaves.iter().zip(&common.remainder);
            leaves.filter(|(leaf, is_rest)| leaf.pod == at && **is_rest == rest).count() as u32
        };
        let needed = |(at, pod): (usize, &PodPart)| {
            let slots_used = if members(at, true) > 0 {
                members(at, false) * all + part
            } else {
                all * self.need.spread(pod.nodes, slots)
            };
            self.need.links(slots_used)
        };
        self.job.pods.iter().enumerate().map(needed).collect()
    }

    /// Checks condition (5): every two leaves own enough cables in common, and every pod owns enough links above its
    /// leaves.
    fn by_pairs(&self, cables: &[&Cables]) -> Result<(), Violation> {
        let needed: Vec<u32> =
            self.job.leaves.iter().map(|part| self.need.slots(part.nodes)).collect();
        if let Some((at, common)) = lacking_pair(cables, &needed) {
            let leaf = self.job.leaves[at].leaf;
            return Err(Violation::Leaf { leaf, needed: needed[at], common });
        }
        let used = |plane: usize| {
            let of_pod = |at| {
                let leaves = self.job.leaves.iter().filter(move |leaf| leaf.pod == at);
                leaves.map(|leaf| leaf.cables[plane]).sum()
            };
            (0..self.job.pods.len()).map(of_pod).map(|slots| self.need.links(slots)).collect()
        };
        self.core(used).map_err(|(_, reason)| reason)
    }

    /// Checks that pods own enough links in every plane. If not, returns the plane and the violation.
    fn core(&self, needed: impl Fn(usize) -> Vec<u32>) -> Result<(), (usize, Violation)> {
        let pods = &self.job.pods;
        if pods.len() < 2 {
            return Ok(());
        }
        for plane in 0..pods[0].planes.len() {
            let mut needed = needed(plane);
            let sum: u32 = needed.iter().sum();
            // Flows into a pod come from other pods, so a pod needs no more links than the others together.
            for own in &mut needed {
                *own = (*own).min(sum - *own);
            }
            let cables: Vec<&Cables> = pods.iter().map(|pod| &pod.planes[plane]).collect();
            let enough = |common: &Common| {
                let of =
                    |rest| needed.iter().zip(&common.remainder).filter(move |(_, is)| **is == rest);
                of(false).all(|(&own, _)| own <= count(&common.all))
                    && of(true).map(|(own, _)| own).sum::<u32>() <= count(&common.part)
            };
            if all_common(&cables).iter().any(enough) {
                continue;
            }
            if let Some((at, common)) = lacking_pair(&cables, &needed) {
                let (pod, needed) = (pods[at].pod, needed[at]);
                return Err((plane, Violation::Pod { pod, plane: plane as u32, needed, common }));
            }
        }
        Ok(())
    }
}
