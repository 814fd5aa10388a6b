//! What a live scheduler does in addition to starting and ending jobs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::sync::Arc;

use common::{PICKY, SIZE, disciplines, jobs, machine, mixed, rule};
use proptest::prelude::*;
use topolane_placement::{Decision, Refusal, Request, Share};
use topolane_scheduler::{RunningJob, Scheduler, queue};

fn scheduler(policy: &str, discipline: &str) -> Scheduler {
    Scheduler::new(machine(), rule(policy), queue(discipline).unwrap())
}

fn ask(id: u64, nodes: u32, walltime: f64) -> Request {
    Request::whole_nodes(id, nodes, walltime)
}

/// Runs a pass. Returns the identities of the jobs that start.
fn pass(scheduler: &mut Scheduler, now: f64) -> Vec<u64> {
    scheduler.pass(now).iter().map(|start| start.request.id).collect()
}

fn promised(scheduler: &Scheduler) -> Option<(u64, f64)> {
    scheduler.last_pass().reservation.map(|promise| (promise.id, promise.at))
}

/// A request that would not fit on the empty machine is refused for good and not queued. A drained node is a node of
/// that machine, because it comes back.
#[test]
fn what_never_fits_is_refused_at_once() {
    for discipline in disciplines() {
        let mut scheduler = scheduler("isolated", discipline);
        scheduler.set_in_service(3, false);
        assert_eq!(
            scheduler.submit(ask(1, 25, 1.0), 0.0),
            Err(Refusal::Never { wanted: 25, most: 24 })
        );
        assert_eq!(
            scheduler.submit(ask(1, 0, 1.0), 0.0),
            Err(Refusal::Never { wanted: 0, most: 0 })
        );
        assert_eq!(scheduler.submit(ask(2, 24, 1.0), 0.0), Ok(()));
        assert_eq!(scheduler.waiting().len(), 1);
        assert!(pass(&mut scheduler, 0.0).is_empty());
        let expected = (discipline != "fcfs").then_some((2, f64::INFINITY));
        assert_eq!(promised(&scheduler), expected, "{discipline}: no end of a running job helps");
        scheduler.set_in_service(3, true);
        assert_eq!(pass(&mut scheduler, 1.0), [2]);
    }
}

/// A job taken out of the queue neither starts nor delays others. A job that does not wait cannot be taken out.
#[test]
fn a_cancelled_job_is_gone() {
    for discipline in disciplines() {
        let mut scheduler = scheduler("first-fit", discipline);
        scheduler.submit(ask(0, 20, 10.0), 0.0).unwrap();
        scheduler.submit(ask(1, 24, 10.0), 0.0).unwrap();
        scheduler.submit(ask(2, 4, 20.0), 0.0).unwrap();
        assert_eq!(pass(&mut scheduler, 0.0), [0], "{discipline}");
        assert!(scheduler.cancel(1) && !scheduler.cancel(1) && !scheduler.cancel(0));
        assert_eq!(pass(&mut scheduler, 1.0), [2], "{discipline}");
    }
}

/// The promise to a cancelled job does not stand in the way of a job that comes at the same moment.
#[test]
fn a_cancelled_promise_holds_nothing() {
    let mut scheduler = scheduler("first-fit", "conservative");
    scheduler.submit(ask(0, 20, 10.0), 0.0).unwrap();
    scheduler.submit(ask(1, 24, 10.0), 0.0).unwrap();
    assert_eq!(pass(&mut scheduler, 0.0), [0]);
    scheduler.cancel(1);
    scheduler.submit(ask(2, 4, 20.0), 0.0).unwrap();
    assert_eq!(pass(&mut scheduler, 1.0), [2]);
}

/// Jobs of higher priority stand before those of lower, and equals in order of submission. A new job of higher priority
/// becomes the head. Under conservative it overtakes no promise that was already given.
#[test]
fn priorities_order_the_queue() {
    for discipline in disciplines() {
        let mut scheduler = scheduler("first-fit", discipline);
        scheduler.submit(ask(0, 24, 10.0), 0.0).unwrap();
        assert_eq!(pass(&mut scheduler, 0.0), [0]);
        for (id, priority) in [(1, 0.0), (2, 5.0), (3, 0.0), (4, 9.0), (5, 5.0)] {
            scheduler.submit(ask(id, 24, 10.0), priority).unwrap();
            pass(&mut scheduler, 1.0);
        }
        let order: Vec<u64> = scheduler.waiting().iter().map(|w| w.request.id).collect();
        assert_eq!(order, [4, 2, 5, 1, 3], "{discipline}");
        let mut started = vec![0];
        for time in 1..6 {
            scheduler.complete(*started.last().unwrap());
            started.extend(pass(&mut scheduler, 10.0 * f64::from(time)));
        }
        let promised = discipline == "conservative";
        let expected = if promised { [0, 1, 2, 3, 4, 5] } else { [0, 4, 2, 5, 1, 3] };
        assert_eq!(started, expected, "{discipline}");
    }
}

/// Among jobs of equal priority the one of lower order goes first, whenever it was submitted. So a request that is
/// withdrawn and submitted again has its old place.
#[test]
fn a_request_submitted_again_keeps_its_place() {
    for discipline in disciplines() {
        let mut scheduler = scheduler("first-fit", discipline);
        for order in [3, 1, 2] {
            scheduler.submit(Request { order, ..ask(order, 24, 10.0) }, 0.0).unwrap();
        }
        scheduler.cancel(2);
        scheduler.submit(Request { order: 2, ..ask(2, 12, 10.0) }, 0.0).unwrap();
        let order: Vec<u64> = scheduler.waiting().iter().map(|w| w.request.id).collect();
        assert_eq!(order, [1, 2, 3], "{discipline}");
    }
}

/// A request for 4 to 16 nodes gets all free nodes, up to 16, when its turn comes. If fewer than 4 are free, it waits.
/// If it overtakes the head, it gets 4. Under conservative every such request gets 4.
#[test]
fn a_range_of_nodes_is_filled_in_turn() {
    let ranged = |id, walltime| Request { most: 16, ..ask(id, 4, walltime) };
    let widths = |scheduler: &mut Scheduler| -> Vec<usize> {
        scheduler.pass(0.0).iter().map(|start| start.placement.nodes().len()).collect()
    };
    for discipline in disciplines() {
        let mut scheduler = scheduler("isolated", discipline);
        let promising = discipline == "conservative";
        scheduler.submit(ranged(0, 10.0), 0.0).unwrap();
        assert_eq!(widths(&mut scheduler), [if promising { 4 } else { 16 }], "{discipline}");
        if promising {
            continue;
        }
        scheduler.submit(ask(1, 20, 10.0), 0.0).unwrap();
        scheduler.submit(ranged(2, 5.0), 0.0).unwrap();
        let overtakes = if discipline.starts_with("easy") { vec![4] } else { vec![] };
        assert_eq!(widths(&mut scheduler), overtakes, "{discipline}");
        scheduler.cancel(1);
        scheduler.submit(ranged(3, 5.0), 0.0).unwrap();
        let rest = if discipline.starts_with("easy") { vec![4] } else { vec![8] };
        assert_eq!(widths(&mut scheduler), rest, "{discipline}");
    }
}

/// A job is not considered before its begin time; from then on it waits like any other. `next_begin` returns the next
/// begin time at which a pass is due.
#[test]
fn begin_times_hide_a_job() {
    for discipline in disciplines().chain(["recorded"]) {
        let mut scheduler = scheduler("first-fit", discipline);
        for (id, begin) in [(0, 5.0), (1, 0.0), (2, 9.0)] {
            scheduler.submit(Request { begin, ..ask(id, 24, 3.0) }, 0.0).unwrap();
        }
        assert_eq!(pass(&mut scheduler, 1.0), [1], "{discipline}");
        assert_eq!(scheduler.next_begin(1.0), Some(5.0));
        scheduler.complete(1);
        assert!(pass(&mut scheduler, 4.0).is_empty());
        assert_eq!(pass(&mut scheduler, 5.0), [0]);
        assert_eq!(scheduler.next_begin(5.0), Some(9.0));
        assert!(pass(&mut scheduler, 9.0).is_empty());
        scheduler.complete(0);
        assert_eq!((pass(&mut scheduler, 9.0), scheduler.next_begin(9.0)), (vec![2], None));
    }
}

/// A new walltime of a running job moves the reservation that waits for this job, to an earlier or a later time. If the
/// job should have ended already, the reservation is for now or a second later.
#[test]
fn a_running_job_may_get_another_walltime() {
    for (discipline, policy) in
        ["easy", "conservative"].iter().flat_map(|d| [(d, "first-fit"), (d, "isolated")])
    {
        let mut scheduler = scheduler(policy, discipline);
        scheduler.submit(ask(0, 20, 10.0), 0.0).unwrap();
        scheduler.submit(ask(1, 24, 10.0), 0.0).unwrap();
        pass(&mut scheduler, 0.0);
        assert_eq!(promised(&scheduler), Some((1, 10.0)));
        for (walltime, now, at) in
            [(30.0, 1.0, 30.0), (6.0, 2.0, 6.0), (1.0, 3.0, 3.0), (10.0, 12.0, 12.0)]
        {
            assert!(scheduler.set_walltime(0, walltime));
            assert!(pass(&mut scheduler, now).is_empty());
            let got = promised(&scheduler).unwrap();
            // Conservative gives a job past its walltime one more second.
            let late = if at == now && *discipline == "conservative" { 1.0 } else { 0.0 };
            assert_eq!(got, (1, at + late), "{discipline} over {policy}");
        }
        assert!(scheduler.complete(0) && !scheduler.complete(0));
        assert_eq!(pass(&mut scheduler, 13.0), [1]);
        assert!(!scheduler.set_walltime(7, 1.0));
    }
}

/// A new walltime of a waiting job counts. A job that no longer ends in time is not backfilled, and a promise made for
/// a shorter time is made again.
#[test]
fn a_waiting_job_may_get_another_walltime() {
    for (discipline, policy) in
        ["easy", "conservative"].iter().flat_map(|d| [(d, "first-fit"), (d, "isolated")])
    {
        let mut scheduler = scheduler(policy, discipline);
        for (id, nodes, walltime) in [(0, 20, 10.0), (1, 24, 10.0), (2, 4, 50.0)] {
            scheduler.submit(ask(id, nodes, walltime), 0.0).unwrap();
        }
        assert_eq!(pass(&mut scheduler, 0.0), [0]);
        scheduler.set_walltime(2, 11.0);
        assert!(pass(&mut scheduler, 0.0).is_empty());
        scheduler.set_walltime(2, 10.0);
        assert_eq!(pass(&mut scheduler, 0.0), [2], "{discipline} over {policy}");
    }
}

/// A promised job does not wait for the very nodes it was promised if one of them goes out of service, or is held by a
/// job past its walltime, while others are idle.
#[test]
fn a_promise_that_cannot_be_kept_is_made_again() {
    for drained in [true, false] {
        let mut scheduler = scheduler("isolated", "conservative");
        for (id, nodes, walltime) in [(0, 12, 10.0), (1, 12, 30.0), (2, 4, 10.0), (3, 4, 90.0)] {
            scheduler.submit(ask(id, nodes, walltime), 0.0).unwrap();
        }
        assert_eq!(pass(&mut scheduler, 0.0), [0, 1]);
        if drained {
            (0..SIZE).step_by(4).for_each(|node| scheduler.set_in_service(node, false));
            scheduler.complete(0);
            assert!(pass(&mut scheduler, 10.0).is_empty());
            scheduler.set_in_service(8, true);
            assert_eq!(pass(&mut scheduler, 11.0), [2]);
        } else {
            assert!(pass(&mut scheduler, 10.0).is_empty(), "job 0 does not end");
            scheduler.complete(1);
            assert_eq!(pass(&mut scheduler, 12.0), [2, 3]);
        }
    }
}

/// A job that another program started holds its nodes, in service or not, and ends when its end is reported. A job that
/// cannot be on the reported nodes changes nothing.
#[test]
fn jobs_are_taken_over_as_they_run() {
    for discipline in disciplines() {
        let mut scheduler = scheduler("first-fit", discipline);
        scheduler.set_in_service(0, false);
        scheduler.adopt(&ask(7, 2, 10.0), vec![0, 1], 5.0).unwrap();
        assert_eq!(scheduler.adopt(&ask(8, 2, 10.0), vec![2, 1], 5.0).unwrap_err().node, 1);
        assert_eq!(scheduler.running().jobs().len(), 1);
        assert_eq!(scheduler.running().get(7).unwrap().expected_end, 15.0);
        scheduler.submit(ask(9, 23, 10.0), 0.0).unwrap();
        assert!(pass(&mut scheduler, 6.0).is_empty());
        scheduler.complete(7);
        assert_eq!(pass(&mut scheduler, 7.0), [9], "node 0 is still out of service");
        assert!(scheduler.occupancy().idle().iter().next().is_none());
    }
}

/// An identity stands for one job. A job that waits or runs is not queued again, and a running job is not taken over
/// again. A waiting job that another program starts waits no longer.
#[test]
fn an_identity_is_known_once() {
    let mut scheduler = scheduler("first-fit", "fcfs");
    let twice = Err(Refusal::Never { wanted: 2, most: 0 });
    scheduler.submit(ask(1, 2, 10.0), 0.0).unwrap();
    assert_eq!(scheduler.submit(ask(1, 2, 10.0), 0.0), twice, "it waits");
    assert_eq!(pass(&mut scheduler, 0.0), [1]);
    assert_eq!(scheduler.submit(ask(1, 2, 10.0), 0.0), twice, "it runs");
    assert_eq!(scheduler.adopt(&ask(1, 2, 10.0), vec![4, 5], 0.0).unwrap_err().node, 4);
    scheduler.submit(ask(2, 2, 10.0), 0.0).unwrap();
    scheduler.adopt(&ask(2, 2, 10.0), vec![4, 5], 0.0).unwrap();
    assert!(scheduler.waiting().is_empty());
    assert_eq!(scheduler.submit(ask(2, 2, 10.0), 0.0), twice, "it was taken over");
    assert!(scheduler.complete(1) && scheduler.complete(2) && !scheduler.complete(2));
    scheduler.submit(ask(2, 2, 10.0), 0.0).unwrap();
    assert!(scheduler.cancel(2));
    scheduler.submit(ask(2, SIZE, 10.0), 0.0).unwrap();
    assert_eq!(pass(&mut scheduler, 1.0), [2], "all is free and the identity with it");
}

/// Nodes that the machine does not have are refused, not looked up.
#[test]
fn nodes_of_another_machine_are_refused() {
    for policy in ["first-fit", "hop-bytes", "hop-bytes-exact", "isolated"] {
        let mut scheduler = scheduler(policy, "easy");
        assert_eq!(scheduler.adopt(&ask(1, 2, 10.0), vec![0, SIZE], 0.0).unwrap_err().node, SIZE);
        let request = Request { members: vec![SIZE], ..ask(1, 2, 10.0) };
        let never = Err(Refusal::Never { wanted: 2, most: 0 });
        assert_eq!(scheduler.submit(request, 0.0), never, "{policy}");
        scheduler.set_in_service(SIZE, true);
        assert_eq!(scheduler.occupancy().idle_nodes(), SIZE);
    }
}

/// A drained node gets no new job, keeps the jobs on it, and counts in no reservation.
#[test]
fn a_drained_node_gets_no_new_job() {
    for discipline in ["easy", "conservative"] {
        let mut scheduler = scheduler("first-fit", discipline);
        scheduler.submit(ask(0, 12, 10.0), 0.0).unwrap();
        scheduler.submit(ask(1, 12, 20.0), 0.0).unwrap();
        assert_eq!(pass(&mut scheduler, 0.0), [0, 1]);
        scheduler.set_in_service(0, false);
        scheduler.submit(ask(2, 12, 10.0), 0.0).unwrap();
        pass(&mut scheduler, 1.0);
        assert_eq!(promised(&scheduler), Some((2, 20.0)), "{discipline}: 11 nodes at 10, 23 at 20");
        scheduler.complete(0);
        assert!(pass(&mut scheduler, 10.0).is_empty());
        scheduler.complete(1);
        let starts = scheduler.pass(20.0);
        assert!(!starts[0].placement.nodes().contains(&0));
    }
}

/// A new scheduler with the waiting and the running jobs of another one.
fn rebuilt(from: &Scheduler, policy: &str) -> Scheduler {
    let mut new = scheduler(policy, "easy");
    for job in from.running().jobs() {
        let walltime = job.expected_end - job.start;
        let request = Request { share: job.placement.share().clone(), ..ask(job.id, 1, walltime) };
        new.adopt(&request, job.placement.nodes().to_vec(), job.start).unwrap();
    }
    for waiting in from.waiting() {
        new.submit((*waiting.request).clone(), waiting.priority).unwrap();
    }
    new
}

fn nodes_by_job(starts: &[Decision]) -> Vec<(u64, Vec<u32>)> {
    starts.iter().map(|start| (start.request.id, start.placement.nodes().to_vec())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// EASY keeps nothing that matters in memory: a scheduler rebuilt at any moment from the
    /// waiting and the running jobs of another starts the same jobs on the same nodes from then on.
    #[test]
    fn a_restart_changes_no_decision(whole in jobs(40), shared in mixed(40), at in 0u32..60) {
        for (policy, jobs) in PICKY.into_iter().map(|p| (p, &whole)).chain([("isolated", &shared), ("first-fit", &shared)]) {
            let mut first = scheduler(policy, "easy");
            let expected = common::drive(&mut first, jobs, |_, _| ());
            let mut second = scheduler(policy, "easy");
            let got = common::drive(&mut second, jobs, |scheduler, now| {
                if now >= f64::from(at) {
                    *scheduler = rebuilt(scheduler, policy);
                }
            });
            let same = expected.start == got.start && expected.nodes == got.nodes;
            prop_assert!(same, "{}: {:?}, then {:?}", policy, expected.start, got.start);
        }
    }

    /// Two schedulers that get the same events at the same times make the same decisions.
    #[test]
    fn the_same_events_give_the_same_decisions(jobs in mixed(40)) {
        for discipline in disciplines() {
            let runs = [0, 1].map(|_| common::run("random", discipline, &jobs));
            prop_assert_eq!(&runs[0], &runs[1]);
        }
    }
}

/// Jobs that share nodes: two jobs of half the cores run side by side, and a third waits. A whole node is never given
/// to a job while another one holds a part of it.
#[test]
fn shares_lie_side_by_side() {
    for discipline in disciplines() {
        let mut scheduler = scheduler("first-fit", discipline);
        let half = |id| Request { share: Share::part(8, 1 << 30), ..ask(id, 24, 10.0) };
        for id in 0..3 {
            scheduler.submit(half(id), 0.0).unwrap();
        }
        scheduler.submit(ask(3, 1, 10.0), 0.0).unwrap();
        assert_eq!(nodes_by_job(&scheduler.pass(0.0)).len(), 2, "{discipline}");
        scheduler.complete(0);
        assert_eq!(pass(&mut scheduler, 1.0), [2], "{discipline}");
        scheduler.complete(1);
        assert!(pass(&mut scheduler, 2.0).is_empty());
        scheduler.complete(2);
        assert_eq!(pass(&mut scheduler, 3.0), [3]);
    }
}

/// Taking cables out of service returns the jobs that may use them: those that own one of these cables, and those that
/// own none but cross a group with such a cable. Placements stay. No new job comes onto the cables until they are back.
/// Cables that are out already, or in again, change nothing.
#[test]
fn links_go_out_of_service_and_come_back() {
    let fabric = machine();
    let second_switch = |leaf| fabric.cable(1, leaf, 0, 1, 0).unwrap();
    for discipline in disciplines() {
        for policy in ["dedicated", "first-fit"] {
            let mut scheduler = scheduler(policy, discipline);
            for (id, nodes) in [(0, 5), (1, 2), (2, 4)] {
                scheduler.submit(ask(id, nodes, 100.0), 0.0).unwrap();
            }
            assert_eq!(pass(&mut scheduler, 0.0), [0, 1, 2]);
            let before: Vec<_> = scheduler.running().jobs().to_vec();
            let cables: Vec<u32> = (0..fabric.groups(1)).map(second_switch).collect();
            let expected: Vec<u64> = (0..3)
                .filter(|&id| {
                    let placement = &scheduler.running().get(id).unwrap().placement;
                    let crosses = |leaf| placement.crossed().contains(&(1, leaf));
                    let owns = |cable| placement.links().contains(cable);
                    cables.iter().any(owns)
                        || placement.links().is_empty() && (0..fabric.groups(1)).any(crosses)
                })
                .collect();
            assert_eq!(scheduler.set_links_in_service(&cables, false), expected);
            assert!(scheduler.set_links_in_service(&cables, false).is_empty(), "they are out");
            assert_eq!(scheduler.users_of(&cables), expected);
            let same = |(one, other): (&RunningJob, &RunningJob)| one.placement == other.placement;
            assert!(before.iter().zip(scheduler.running().jobs()).all(same));
            scheduler.submit(ask(3, 6, 10.0), 0.0).unwrap();
            pass(&mut scheduler, 1.0);
            let of_3 = scheduler.running().get(3).map(|job| Arc::clone(&job.placement));
            assert!(
                of_3.is_none_or(|of_3| cables.iter().all(|cable| !of_3.links().contains(cable)))
            );
            for id in 0..4 {
                scheduler.cancel(id);
                scheduler.complete(id);
            }
            scheduler.submit(ask(4, SIZE, 10.0), 0.0).unwrap();
            let runs = if policy == "dedicated" { vec![] } else { vec![4] };
            assert_eq!(
                pass(&mut scheduler, 2.0),
                runs,
                "{discipline}: half of the bandwidth is left"
            );
            assert!(scheduler.set_links_in_service(&cables, true).is_empty());
            assert_eq!(scheduler.occupancy().links_out().count(), 0);
            let runs = if policy == "dedicated" { vec![4] } else { vec![] };
            assert_eq!(pass(&mut scheduler, 3.0), runs);
        }
    }
}

/// A node whose link is out of service gets no job, drained or not. When link and node are both back, it does.
#[test]
fn a_node_without_a_link_is_out_of_service() {
    let mut scheduler = scheduler("first-fit", "easy");
    let link: Vec<u32> = machine().uplinks(0, 3).collect();
    scheduler.submit(ask(1, SIZE, 1.0), 0.0).unwrap();
    scheduler.set_links_in_service(&link, false);
    assert!(pass(&mut scheduler, 0.0).is_empty());
    scheduler.set_in_service(3, false);
    scheduler.set_links_in_service(&link, true);
    assert!(pass(&mut scheduler, 1.0).is_empty());
    scheduler.set_links_in_service(&link, false);
    scheduler.set_in_service(3, true);
    assert!(pass(&mut scheduler, 2.0).is_empty());
    scheduler.set_links_in_service(&link, true);
    assert_eq!(pass(&mut scheduler, 3.0), [1]);
}
