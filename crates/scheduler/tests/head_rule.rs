//! The head of the queue waits a while for nodes that suit the policy's rule for heads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::sync::Arc;

use common::{Job, SIZE, drive, jobs, machine, no_core_twice};
use proptest::prelude::*;
use topolane_placement::{
    Choice, FreeSlots, HeadRule, Occupancy, Placement, Policy, QueueRule, Refusal, Request, Traits,
};
use topolane_scheduler::{HeadWait, Scheduler, queue};

/// The nodes of a leaf of [`machine`].
const LEAF: u32 = 4;

/// Places a job on nodes of one leaf.
struct OneLeaf;

/// Places a job on nodes of one leaf if it can, else on any nodes. By its rule for heads, the head waits for nodes of
/// one leaf.
struct Anywhere {
    patience: f64,
}

impl Policy for OneLeaf {
    fn name(&self) -> &'static str {
        "one-leaf"
    }

    fn traits(&self) -> Traits {
        Traits::NONE
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let wanted = request.nodes;
        let idle = |leaf: u32| {
            (leaf * LEAF..(leaf + 1) * LEAF).filter(|&node| free.contains(node)).collect::<Vec<_>>()
        };
        let found = (0..SIZE / LEAF).map(idle).find(|idle| idle.len() >= wanted as usize);
        let mut nodes = found.ok_or(Refusal::WouldShareLinks { wanted, free: free.total() })?;
        nodes.truncate(wanted as usize);
        Ok(Choice::nodes(nodes))
    }
}

impl Policy for Anywhere {
    fn name(&self) -> &'static str {
        "anywhere"
    }

    fn traits(&self) -> Traits {
        Traits::NONE
    }

    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        Some(self)
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        OneLeaf.choose(request, free, occupancy).or_else(|_| {
            let idle = (0..SIZE).filter(|&node| free.contains(node));
            let nodes: Vec<u32> = idle.take(request.nodes as usize).collect();
            Ok(Choice::nodes(nodes))
        })
    }
}

impl QueueRule for Anywhere {
    fn waste(&self, _: &Request, _: &Placement, _: &Occupancy) -> f64 {
        0.0
    }

    fn for_head(&self) -> Option<HeadRule<'_>> {
        Some(HeadRule { policy: &OneLeaf, patience: self.patience })
    }
}

fn scheduler(patience: f64) -> Scheduler {
    Scheduler::new(machine(), Arc::new(Anywhere { patience }), queue("easy").unwrap())
}

fn ask(id: u64, nodes: u32, walltime: f64) -> Request {
    Request::whole_nodes(id, nodes, walltime)
}

/// Runs a pass. Returns the identity and the nodes of each job that starts.
fn pass(scheduler: &mut Scheduler, now: f64) -> Vec<(u64, Vec<u32>)> {
    let starts = scheduler.pass(now);
    starts.iter().map(|start| (start.request.id, start.placement.nodes().to_vec())).collect()
}

fn promised(scheduler: &Scheduler) -> Option<f64> {
    scheduler.last_pass().reservation.map(|reservation| reservation.at)
}

/// Takes all nodes of every leaf but the first `idle`: on the first leaf until `first`, on the second until `second`,
/// on the others until 100.
fn taken(scheduler: &mut Scheduler, idle: u32, first: f64, second: f64) {
    for leaf in 0..SIZE / LEAF {
        let until = [first, second].get(leaf as usize).copied().unwrap_or(100.0);
        let nodes: Vec<u32> = (leaf * LEAF + idle..(leaf + 1) * LEAF).collect();
        let job = ask(u64::from(leaf) + 100, nodes.len() as u32, until);
        scheduler.adopt(&job, nodes, 0.0).unwrap();
    }
}

/// Four nodes are idle, on as many leaves. A job of four for ten seconds waits for the first leaf, which is free in time, and
/// no other job takes a node of that leaf for longer.
#[test]
fn the_head_waits_for_the_other_rule() {
    let mut scheduler = scheduler(0.5);
    taken(&mut scheduler, 1, 5.0, 100.0);
    scheduler.submit(ask(0, 4, 10.0), 0.0).unwrap();
    scheduler.submit(ask(1, 1, 50.0), 0.0).unwrap();
    scheduler.submit(ask(2, 1, 5.0), 0.0).unwrap();
    assert_eq!(
        pass(&mut scheduler, 0.0),
        [(2, vec![0])],
        "it ends in time; the one before does not"
    );
    assert_eq!(promised(&scheduler), Some(5.0));
    scheduler.complete(2);
    scheduler.complete(100);
    assert_eq!(pass(&mut scheduler, 5.0), [(0, vec![0, 1, 2, 3]), (1, vec![4])]);
}

/// If the leaf is free later than the job would wait, the job takes the nodes that are idle.
#[test]
fn the_head_waits_no_longer_than_its_patience() {
    let mut scheduler = scheduler(0.5);
    taken(&mut scheduler, 1, 5.1, 100.0);
    scheduler.submit(ask(0, 4, 10.0), 0.0).unwrap();
    assert_eq!(pass(&mut scheduler, 0.0), [(0, vec![0, 4, 8, 12])]);
}

/// A job without a walltime does not wait, because the longest wait is a fraction of the walltime.
#[test]
fn a_head_without_a_walltime_does_not_wait() {
    let mut scheduler = scheduler(0.5);
    taken(&mut scheduler, 1, 1.0, 100.0);
    scheduler.submit(ask(0, 4, f64::INFINITY), 0.0).unwrap();
    assert_eq!(pass(&mut scheduler, 0.0), [(0, vec![0, 4, 8, 12])]);
}

/// Nothing is idle. From 2 on four nodes are free, on as many leaves; from 7 on a whole leaf is. The job of ten seconds
/// waits at most five from the first time at which it could start. So it is promised 7, and waits although four nodes
/// are idle before. If the leaf is free only from 7.1 on, the job is promised 2, and starts then.
#[test]
fn what_is_later_counts_from_the_first_end_that_would_do() {
    for (leaf, at, nodes) in [(7.0, 7.0, vec![0, 1, 2, 3]), (7.1, 2.0, vec![4, 8, 12, 16])] {
        let mut scheduler = scheduler(0.5);
        for job in 0..5 {
            let nodes = if job == 0 { vec![0, 1, 2, 3] } else { vec![job as u32 * LEAF] };
            let until = if job == 0 { leaf } else { 2.0 };
            scheduler.adopt(&ask(100 + job, nodes.len() as u32, until), nodes, 0.0).unwrap();
        }
        let rest: Vec<u32> = (5..SIZE).filter(|node| node % LEAF > 0 || *node == 20).collect();
        scheduler.adopt(&ask(200, rest.len() as u32, 100.0), rest, 0.0).unwrap();
        scheduler.submit(ask(0, 4, 10.0), 0.0).unwrap();
        assert!(pass(&mut scheduler, 0.0).is_empty());
        assert_eq!(promised(&scheduler), Some(at));
        for job in 101..105 {
            scheduler.complete(job);
        }
        let started = pass(&mut scheduler, 2.0);
        assert_eq!(started.is_empty(), at > 2.0);
        scheduler.complete(100);
        let later = pass(&mut scheduler, leaf);
        assert_eq!([started, later].concat(), [(0, nodes)]);
    }
}

/// The patience does not begin again. That another leaf would be free later than promised, but within the patience from
/// now on, does not make a job wait longer.
#[test]
fn the_patience_does_not_begin_again() {
    let mut scheduler = scheduler(0.5);
    taken(&mut scheduler, 1, 3.0, 6.0);
    scheduler.submit(ask(0, 4, 10.0), 0.0).unwrap();
    assert!(pass(&mut scheduler, 0.0).is_empty());
    assert_eq!(promised(&scheduler), Some(3.0));
    scheduler.set_in_service(0, false);
    scheduler.complete(100);
    assert_eq!(pass(&mut scheduler, 2.0), [(0, vec![1, 2, 3, 4])]);
}

/// A scheduler that takes over the decisions of another one goes on like that one. A head that has waited in vain
/// starts, and so does one for which the leaf is too late. A head for which the leaf is in time waits.
#[test]
fn another_scheduler_takes_over_the_wait() {
    for (until, nodes) in
        [(Some(3.0), vec![1, 2, 3, 4]), (None, vec![1, 2, 3, 4]), (Some(6.0), vec![])]
    {
        let mut scheduler = scheduler(0.5);
        taken(&mut scheduler, 1, 3.0, 6.0);
        scheduler.complete(100);
        scheduler.set_in_service(0, false);
        scheduler.submit(ask(0, 4, 10.0), 0.0).unwrap();
        scheduler.set_head_wait(HeadWait { id: 0, until });
        let started: Vec<u32> =
            pass(&mut scheduler, 2.0).into_iter().flat_map(|job| job.1).collect();
        assert_eq!(started, nodes, "taken over: {until:?}");
        let kept = scheduler.last_pass().head_wait;
        assert_eq!(kept, nodes.is_empty().then_some(HeadWait { id: 0, until: Some(6.0) }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// The head starts no later than it was first promised, its promise never moves later, and every job starts: also
    /// jobs wider than a leaf, which the rule for heads never places.
    #[test]
    fn no_head_is_late(jobs in jobs(60), patience in 0.0..2.0) {
        let mut scheduler = scheduler(patience);
        let run = drive(&mut scheduler, &jobs, |_, _| ());
        no_core_twice(&jobs, &run);
        prop_assert!(run.start.iter().all(Option::is_some));
        let mut promised = std::collections::HashMap::new();
        for promise in &run.reservations {
            let before = promised.insert(promise.id, promise.at).unwrap_or(f64::INFINITY);
            prop_assert!(promise.at <= before, "job {} was promised {}, then {}", promise.id, before, promise.at);
            prop_assert!(run.start[promise.id as usize].is_some_and(|start| start <= promise.at));
        }
    }

    /// Without patience, a head waits for the rule for heads only if it has no other place before.
    #[test]
    fn without_patience_no_head_starts_later(jobs in jobs(40)) {
        let first = |jobs: &[Job]| -> Option<f64> { drive(&mut scheduler(0.0), jobs, |_, _| ()).reservations.first().map(|one| one.at) };
        let plain = |jobs: &[Job]| -> Option<f64> { common::run("first-fit", "easy", jobs).reservations.first().map(|one| one.at) };
        prop_assert_eq!(first(&jobs), plain(&jobs));
    }
}
