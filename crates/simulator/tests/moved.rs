//! What moves of running jobs cost them.
#![allow(clippy::unwrap_used)]

mod simulation_support;

use std::sync::Arc;

use simulation_support::{PLAIN, try_run};
use topolane_fabric::{Fabric, fat_tree};
use topolane_scheduler::Defrag;
use topolane_simulator::workload::{Workload, preset};
use topolane_simulator::{Metrics, RunOptions};

/// Runs 400 jobs, of eight nodes in the mean and submitted at once, on 128 nodes.
fn run(moving: Option<Defrag>, min_bandwidth: Option<f64>) -> topolane_simulator::Outcome {
    try_run(
        &workload(),
        &machine(),
        "dedicated",
        "easy",
        &RunOptions { moving, min_bandwidth, ..PLAIN },
    )
    .unwrap()
}

fn machine() -> Arc<Fabric> {
    Arc::new(Fabric::build(&fat_tree(8, 8).unwrap()).unwrap())
}

fn workload() -> Workload {
    let mut jobs = preset("exp-8", 1).unwrap();
    jobs.jobs.truncate(400);
    jobs.jobs.retain(|job| job.nodes <= 128);
    jobs
}

/// A job that is moved stands still for the pause and the copying of its memory, at each move. A job that is not moved,
/// and does not wait for others to leave, takes as long as alone. There are at most as many moves as starts pay for.
#[test]
fn a_move_takes_its_time() {
    let pause = 5.0;
    let per_start = 0.2;
    let outcome = run(Some(Defrag::new(3, per_start, pause)), None);
    let fabric = machine();
    let cable = fabric.uplinks(0, 0).next().unwrap();
    let copying = fabric.kind(0).memory as f64 / fabric.bandwidth(cable);
    let mut moves = 0;
    for job in &outcome.jobs {
        let longer = job.finish - job.start - job.alone;
        let still = job.moves.len() as f64 * (pause + copying);
        assert!(longer > still - 1e-6, "{longer} {}", job.moves.len());
        assert!(job.moves.iter().all(|step| (step.pause - pause - copying).abs() < 1e-6));
        moves += job.moves.len() as u64;
    }
    assert!(outcome.moves > 0 && outcome.moves == moves);
    assert!(outcome.moves as f64 <= per_start * outcome.jobs.len() as f64);
    let jobs = workload();
    let shared = Metrics::of(&jobs, &fabric, &outcome).links_shared;
    assert!(shared.iter().all(|&links| links == 0), "wherever they were, on links of their own");
    let undisturbed = outcome.jobs.iter().filter(|job| job.moves.is_empty());
    let as_alone = undisturbed.filter(|job| (job.finish - job.start - job.alone).abs() < 1e-6);
    assert!(as_alone.count() * 2 > outcome.jobs.len());
}

/// A job that runs past its walltime because it stood still reports by how much. Every move reports which job started
/// in the room it made.
#[test]
fn what_a_move_cost_is_reported() {
    let outcome = run(Some(Defrag::new(3, 0.2, 5.0)), None);
    let mut late = 0;
    for job in &outcome.jobs {
        let longer = job.finish - job.start - job.walltime;
        let late_by = job.past_walltime();
        assert!(late_by >= 0.0 && (longer > 1e-6) == (late_by > 0.0), "{longer} {late_by}");
        assert!(late_by <= job.stood_still && (late_by == 0.0 || late_by <= longer + 1e-6));
        late += u32::from(late_by > 0.0);
        for step in &job.moves {
            let other = outcome.jobs.iter().find(|other| Some(other.job) == step.made_room_for);
            let start = other.map(|other| other.start);
            assert_eq!(start, Some(step.time), "it starts when the room is made");
        }
    }
    assert!(late > 0, "run times are walltimes here, so a pause makes a job late");
    assert!(run(None, None).jobs.iter().all(|job| job.past_walltime() == 0.0));
}

/// If moves are not allowed, no job is moved. A job that accepts half of the bandwidth has at least half and at most
/// all of it. In the mean it has more than half, because idle links are lent. Without phi every job has all.
#[test]
fn idle_links_are_lent() {
    let strict = run(None, None);
    assert_eq!(strict.moves, 0);
    assert!(strict.jobs.iter().all(|job| job.bandwidth_share.to_bits() == 1f64.to_bits()));
    let half = run(None, Some(0.5));
    assert!(half.jobs.iter().all(|job| (0.5..=1.0).contains(&job.bandwidth_share)));
    let on_links = || half.jobs.iter().filter(|job| !job.placement.links().is_empty());
    let mean = on_links().map(|job| job.bandwidth_share).sum::<f64>() / on_links().count() as f64;
    assert!(mean > 0.55, "{mean}");
}

/// The links of a job are listed without a gap from its start to its end, and its mean share is that of the list. The
/// share is full inside one leaf. Elsewhere it is what the job's own and lent links carry, before a move and after it.
#[test]
fn the_links_of_a_job_are_known_for_all_its_time() {
    let outcome = run(Some(Defrag::new(3, 0.2, 5.0)), Some(0.5));
    let mut moved_with_less = 0;
    for job in &outcome.jobs {
        let Some(first) = job.links.first() else {
            assert!(job.places().all(|(_, place)| place.links().is_empty()));
            continue;
        };
        assert!(job.links.is_sorted_by(|one, other| one.from < other.from));
        let ends = job.links.iter().skip(1).map(|held| held.from).chain([job.finish]);
        let mut had = first.from - job.start;
        for (held, until) in job.links.iter().zip(ends) {
            let place = job.places().find(|&(left, _)| held.from < left || left >= job.finish);
            assert_eq!(held.placement.links(), place.unwrap().1.links());
            had += held.bandwidth_share * (until - held.from);
        }
        assert!((had / (job.finish - job.start) - job.bandwidth_share).abs() < 1e-9);
        moved_with_less += u32::from(!job.moves.is_empty() && job.bandwidth_share < 1.0);
    }
    assert!(moved_with_less > 0);
}
