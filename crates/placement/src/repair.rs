//! Room for a job by moving a few that run.

use std::cmp::Reverse;
use std::sync::Arc;

use topolane_fabric::GroupIndex;

use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::request::{Request, Share};
use crate::what_if::WhatIf;

/// A job that runs and may be moved.
#[derive(Debug, Clone, Copy)]
pub struct Movable<'a> {
    /// What it asked for; of a range it keeps the number of nodes that it has.
    pub request: &'a Request,
    /// Where it is.
    pub placement: &'a Arc<Placement>,
}

/// Jobs to be moved at one time, and the place that is then free.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// The moved: identity and new place. Their old places may be among the new ones.
    pub moved: Vec<(u64, Arc<Placement>)>,
    /// The place of the job they make room for.
    pub placement: Arc<Placement>,
}

/// Sets of jobs that are tried.
const TRIES: usize = 96;
/// Groups that are looked at, those with most room first.
const GROUPS: usize = 4;
/// Jobs of a group that are looked at.
const JOBS: usize = 12;

/// Moves up to `most` jobs so that the policy places the request and all of them: first one, then two and so on, the
/// smallest first. A job as large as the request is never moved, none that shares its nodes for one that does not, or the
/// other way round, and no member of a group that grows. `None` where none of the sets tried helps, and where less is free
/// than is asked for.
pub fn repair(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    running: &[Movable<'_>],
    most: usize,
) -> Option<Repair> {
    let wanted = size(&request.share, request.nodes);
    let size_of = |job: &Movable<'_>| size(&job.request.share, job.placement.nodes().len() as u32);
    let movable = |job: &&Movable<'_>| {
        let alike = job.request.share.is_whole() == request.share.is_whole();
        alike && stands_alone(job.request) && size_of(job) < wanted
    };
    let top = occupancy.fabric().depth();
    let all = (0..occupancy.fabric().groups(top)).map(|group| free(occupancy, request, top, group));
    if !stands_alone(request) || all.sum::<u64>() < wanted {
        return None;
    }
    let mut tries = TRIES;
    let level = home_level(occupancy, request);
    for group in with_most_room(occupancy, request, level) {
        let fabric = Arc::clone(occupancy.fabric());
        let within = |job: &&Movable<'_>| {
            job.placement.nodes().iter().any(|&node| fabric.group(level, node) == group)
        };
        let mut jobs: Vec<&Movable<'_>> = running.iter().filter(movable).filter(within).collect();
        jobs.sort_by_key(|job| (size_of(job), job.request.id));
        jobs.truncate(JOBS);
        for count in 1..=most {
            let found = combinations(jobs.len(), count, &mut |chosen| {
                tries = tries.checked_sub(1)?;
                let chosen: Vec<&Movable<'_>> = chosen.iter().map(|&at| jobs[at]).collect();
                attempt(policy, request, occupancy, &chosen)
            });
            if found.is_some() || tries == 0 {
                return found;
            }
        }
    }
    None
}

/// Whether all there is of it is in the request, and the occupancy knows what is free for it.
fn stands_alone(request: &Request) -> bool {
    request.members.is_empty() && request.slots.is_none()
}

/// What so many slots take: whole nodes, or cores of nodes that are shared.
fn size(share: &Share, slots: u32) -> u64 {
    match share {
        Share::Whole => u64::from(slots),
        Share::Part(amounts) => u64::from(slots).saturating_mul(amounts.cores()),
    }
}

/// What is free in a group, in the same units.
fn free(occupancy: &Occupancy, request: &Request, level: usize, group: GroupIndex) -> u64 {
    match &request.share {
        Share::Whole => u64::from(occupancy.idle_in(level, group)),
        Share::Part(_) => {
            let nodes = occupancy.fabric().node_range(level, group);
            let serving = nodes.filter(|&node| occupancy.in_service().contains(node));
            serving.map(|node| u64::from(occupancy.cores_free(node))).sum()
        }
    }
}

/// The lowest level whose groups are large enough.
fn home_level(occupancy: &Occupancy, request: &Request) -> usize {
    let wanted = size(&request.share, request.nodes);
    let top = occupancy.fabric().depth();
    let holds = |level: &usize| free(occupancy.empty(), request, *level, 0) >= wanted;
    (1..top).find(holds).unwrap_or(top)
}

fn with_most_room(occupancy: &Occupancy, request: &Request, level: usize) -> Vec<GroupIndex> {
    let mut groups: Vec<GroupIndex> = (0..occupancy.fabric().groups(level)).collect();
    groups.sort_by_cached_key(|&group| (Reverse(free(occupancy, request, level, group)), group));
    groups.truncate(GROUPS);
    groups
}

/// Calls `ask` with the subsets of `0..n` of `count` members in lexical order until it answers.
fn combinations<T>(
    n: usize,
    count: usize,
    ask: &mut impl FnMut(&[usize]) -> Option<T>,
) -> Option<T> {
    fn extend<T>(
        from: usize,
        (n, count): (usize, usize),
        chosen: &mut Vec<usize>,
        ask: &mut impl FnMut(&[usize]) -> Option<T>,
    ) -> Option<T> {
        if chosen.len() == count {
            return ask(chosen);
        }
        (from..n).find_map(|at| {
            chosen.push(at);
            let found = extend(at + 1, (n, count), chosen, ask);
            chosen.pop();
            found
        })
    }
    extend(0, (n, count), &mut Vec::with_capacity(count), ask)
}

fn attempt(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    chosen: &[&Movable<'_>],
) -> Option<Repair> {
    let mut then = occupancy.what_if();
    for job in chosen {
        then.release(Arc::clone(job.placement));
    }
    let placement = place(policy, request, &mut then)?;
    let mut order: Vec<&&Movable<'_>> = chosen.iter().collect();
    order.sort_by_key(|job| Reverse(job.placement.nodes().len()));
    let mut moved = Vec::with_capacity(chosen.len());
    for job in order {
        let nodes = job.placement.nodes().len() as u32;
        let again = Request { nodes, most: nodes, ..job.request.clone() };
        moved.push((job.request.id, place(policy, &again, &mut then)?));
    }
    Some(Repair { moved, placement })
}

fn place(policy: &dyn Policy, request: &Request, then: &mut WhatIf<'_>) -> Option<Arc<Placement>> {
    let placement = Arc::new(policy.place(request, then).ok()?);
    then.claim(Arc::clone(&placement)).ok()?;
    Some(placement)
}
