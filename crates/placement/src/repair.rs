//! Room for a job by moving a few that run.

use std::cmp::Reverse;
use std::sync::Arc;

use topolane_fabric::{Fabric, GroupIndex};

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

/// Moves up to `most` jobs so that the policy places the request and all of them: first one, then two and so on, those
/// of fewest nodes first. A job as large as the request is never moved. `None` where none of the sets tried helps, and
/// for requests that are not plain.
pub fn repair(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    running: &[Movable<'_>],
    most: usize,
) -> Option<Repair> {
    let movable = |job: &&Movable<'_>| {
        let asked = job.request;
        asked.share == Share::Whole
            && asked.members.is_empty()
            && job.placement.nodes().len() < request.nodes as usize
    };
    if !request.is_plain() || occupancy.idle_nodes() < request.nodes {
        return None;
    }
    let mut tries = TRIES;
    let level = home_level(occupancy.fabric(), request.nodes);
    for group in with_most_room(occupancy, level) {
        let fabric = Arc::clone(occupancy.fabric());
        let within = |job: &&Movable<'_>| {
            job.placement.nodes().iter().any(|&node| fabric.group(level, node) == group)
        };
        let mut jobs: Vec<&Movable<'_>> = running.iter().filter(movable).filter(within).collect();
        jobs.sort_by_key(|job| (job.placement.nodes().len(), job.request.id));
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

/// The lowest level whose groups are large enough.
fn home_level(fabric: &Fabric, nodes: u32) -> usize {
    let holds = |level: &usize| fabric.node_range(*level, 0).len() >= nodes as usize;
    (1..fabric.depth()).find(holds).unwrap_or(fabric.depth())
}

fn with_most_room(occupancy: &Occupancy, level: usize) -> Vec<GroupIndex> {
    let mut groups: Vec<GroupIndex> = (0..occupancy.fabric().groups(level)).collect();
    groups.sort_by_key(|&group| (Reverse(occupancy.idle_in(level, group)), group));
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
