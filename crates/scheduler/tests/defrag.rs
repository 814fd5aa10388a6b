//! Running jobs are moved within the budget, and the head keeps its promise.
#![allow(clippy::unwrap_used, clippy::float_cmp)]

mod common;

use std::sync::Arc;

use common::{EASY, Job, drive, jobs, rule};
use proptest::prelude::*;
use topolane_fabric::{Fabric, fat_tree};
use topolane_placement::{Request, policy};
use topolane_scheduler::{Defrag, Scheduler, queue};

/// A scheduler of two pods of two leaves of two nodes, under `dedicated` and EASY.
fn scheduler(defrag: Option<Defrag>) -> Scheduler {
    let fabric = Arc::new(Fabric::build(&fat_tree(4, 2).unwrap()).unwrap());
    let owned = Arc::from(policy("dedicated", 0).unwrap());
    Scheduler::new(fabric, owned, queue("easy").unwrap()).moving(defrag)
}

/// A scheduler in which two jobs run, one in each pod with a node on each of its leaves. Their uplinks have no plane in
/// common.
fn with_two(defrag: Option<Defrag>) -> Scheduler {
    let mut scheduler = scheduler(defrag);
    let fabric = Arc::clone(scheduler.occupancy().fabric());
    for (pod, slot) in [(0u32, 0), (1, 1)] {
        let request = Request::whole_nodes(u64::from(pod), 2, 100.0);
        let uplink = |leaf| fabric.cable(1, leaf, 0, slot, 0).unwrap();
        let links = vec![uplink(2 * pod), uplink(2 * pod + 1)];
        let nodes = vec![4 * pod, 4 * pod + 2];
        scheduler.adopt_with_links(&request, nodes, (links, 1.0), 0.0).unwrap();
    }
    scheduler
}

/// Runs a pass. Returns the identity and the number of nodes of each job that starts.
fn pass(scheduler: &mut Scheduler, now: f64) -> Vec<(u64, u32)> {
    scheduler.pass(now).iter().map(|start| (start.request.id, start.request.nodes)).collect()
}

/// Four nodes are free, but a job on them would have no links of its own. If one job may be moved, the head starts at
/// once, and the moved job runs on elsewhere, on as many nodes.
#[test]
fn the_head_starts_where_others_make_room() {
    for (defrag, moves) in [(None, 0), (Some(Defrag::new(3, 1.0, 5.0)), 1)] {
        let mut scheduler = with_two(defrag);
        // The start of this job pays for the moves.
        scheduler.submit(Request::whole_nodes(5, 1, 1.0), 0.0).unwrap();
        assert_eq!(pass(&mut scheduler, 1.0), [(5, 1)]);
        scheduler.complete(5);
        scheduler.submit(Request::whole_nodes(9, 4, 10.0), 0.0).unwrap();
        let started = if moves == 1 { vec![(9, 4)] } else { vec![] };
        assert_eq!(pass(&mut scheduler, 2.0), started);
        assert_eq!(scheduler.last_moved().len(), moves);
        for moved in scheduler.last_moved().to_vec() {
            assert_eq!(moved.made_room_for, 9);
            let (placement, job) = (moved.placement, scheduler.running().get(moved.id).unwrap());
            assert_eq!((&job.placement, job.start, job.expected_end), (&placement, 0.0, 100.0));
            assert_eq!(placement.nodes().len(), 2);
        }
        assert_eq!(pass(&mut scheduler, 3.0), []);
        assert!(scheduler.last_moved().is_empty());
    }
}

/// No job is moved before enough jobs have started to pay for it. At a tenth of a move for each start, that is after
/// ten.
#[test]
fn moves_are_paid_for_by_starts() {
    let mut scheduler = with_two(Some(Defrag::new(3, 0.1, 5.0)));
    scheduler.submit(Request::whole_nodes(9, 4, 10.0), 0.0).unwrap();
    assert_eq!(pass(&mut scheduler, 1.0), []);
    for id in 10..20 {
        scheduler.submit(Request::whole_nodes(id, 1, 1.0), 1.0).unwrap();
        assert_eq!(
            pass(&mut scheduler, id as f64).len(),
            1,
            "one node goes anywhere, and goes first"
        );
        scheduler.complete(id);
    }
    assert_eq!(pass(&mut scheduler, 30.0), [(9, 4)]);
    assert_eq!(scheduler.last_moved().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Every job that starts gets as many nodes as it asks for, also after others have made room for one behind the head:
    /// what was planned before that holds no longer.
    #[test]
    fn what_was_planned_before_a_move_is_planned_again(jobs in jobs(150), width in 1u32..4) {
        let jobs: Vec<Job> = jobs.into_iter().map(|job| Job { nodes: job.nodes * width, ..job }).collect();
        let fabric = Arc::new(Fabric::build(&fat_tree(8, 4).unwrap()).unwrap());
        for (policy, discipline) in [("dedicated", "easy"), ("dedicated", EASY[1]), ("dedicated", EASY[2]), ("jigsaw", "easy")] {
            let scheduler = Scheduler::new(Arc::clone(&fabric), rule(policy), queue(discipline).unwrap());
            let run = drive(&mut scheduler.moving(Some(Defrag::new(3, 1.0, 10.0))), &jobs, |_, _| ());
            for (job, nodes) in jobs.iter().zip(&run.nodes) {
                prop_assert!(nodes.is_empty() || nodes.len() == job.nodes as usize, "{} {}: {:?}", policy, discipline, nodes);
            }
            let ran = run.start.iter().filter(|start| start.is_some()).count();
            let placed = run.nodes.iter().filter(|nodes| !nodes.is_empty()).count();
            prop_assert_eq!(ran, placed, "{} {}", policy, discipline);
        }
    }
}
