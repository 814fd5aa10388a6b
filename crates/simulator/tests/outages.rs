//! Links that fail while jobs run.
#![allow(clippy::unwrap_used, clippy::float_cmp)]

mod simulation_support;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use simulation_support::{PLAIN, job, try_run, workload};
use topolane_fabric::{CableId, Fabric, fat_tree};
use topolane_simulator::workload::{Job, Workload};
use topolane_simulator::{JobOutcome, Outage, RunOptions};

/// A machine of 16 nodes in 4 pods of 2 leaves of 2 nodes. Every leaf and every second-level switch has 2 uplinks.
fn machine() -> Arc<Fabric> {
    Arc::new(Fabric::build(&fat_tree(4, 4).unwrap()).unwrap())
}

fn run(jobs: &Workload, policy: &str, queue: &str, outages: Vec<Outage>) -> Vec<JobOutcome> {
    let options = RunOptions { outages, min_bandwidth: Some(0.5), ..PLAIN };
    try_run(jobs, &machine(), policy, queue, &options).unwrap().jobs
}

/// All cables from a group of that level upwards: a node, a leaf or a pod.
fn uplinks(level: usize, group: u32) -> Vec<CableId> {
    machine().uplinks(level, group).collect()
}

/// The cables out of service at this time.
fn out(outages: &[Outage], at: f64) -> BTreeSet<CableId> {
    let there = outages.iter().filter(|outage| outage.from <= at && at < outage.until);
    there.flat_map(|outage| outage.cables.iter().copied()).collect()
}

fn jobs() -> impl Strategy<Value = Workload> {
    let one = (0u32..40, 1u32..30, 0u32..20, 1u32..17);
    prop::collection::vec(one, 1..40).prop_map(|rows| {
        let mut jobs: Vec<Job> = (0..)
            .zip(rows)
            .map(|(id, (submit, run, more, nodes))| {
                job(id, submit.into(), run.into(), Some(f64::from(run + more)), nodes)
            })
            .collect();
        jobs.sort_by(|one, other| one.submit.total_cmp(&other.submit));
        workload(jobs)
    })
}

fn outages() -> impl Strategy<Value = Vec<Outage>> {
    let cables = prop::collection::vec(0..machine().links(), 1..8);
    let group = (1usize..3, 0u32..4).prop_map(|(level, group)| uplinks(level, group));
    let until = prop_oneof![(1u32..40).prop_map(f64::from), Just(f64::INFINITY)];
    let one = (prop_oneof![cables, group], 0u32..60, until).prop_map(|(cables, from, lasts)| {
        Outage { cables, from: from.into(), until: f64::from(from) + lasts }
    });
    prop::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A job that starts during an outage owns no failed link, has no node without a link, and is not both inside and
    /// outside of a group that no link leaves. A job is affected if it runs when a working link fails that it owns or,
    /// if it owns no links, may use. Until the first outage everything is as without it, and the jobs that run then end
    /// when they would have.
    #[test]
    fn no_job_starts_on_failed_links(
        jobs in jobs(),
        outages in outages(),
        policy in prop::sample::select(vec![
            "dedicated", "jigsaw", "jigsaw-relaxed", "laas", "isolated", "quiet-neighborhoods", "first-fit", "slurm-tree",
        ]),
        queue in prop::sample::select(vec!["fcfs", "easy", "conservative"]),
    ) {
        let fabric = machine();
        let found = run(&jobs, policy, queue, outages.clone());
        for job in &found {
            let failed = out(&outages, job.start);
            let is_out = |cable: CableId| failed.contains(&cable);
            prop_assert!(job.placement.links().iter().all(|&cable| !is_out(cable)));
            for &node in job.placement.nodes() {
                prop_assert!(!fabric.uplinks(0, node).all(is_out), "node {node} cannot be reached");
            }
            for &(level, group) in job.placement.crossed() {
                let level = usize::from(level);
                let is_cut_off = level < fabric.depth() && fabric.uplinks(level, group).all(is_out);
                prop_assert!(!is_cut_off, "nothing leaves group {group} of level {level}");
            }
            let hit = outages.iter().any(|outage| {
                let from = outage.from.max(jobs.jobs[0].submit);
                let before = out(&outages, from - 1e-6);
                job.start < from && from < job.finish && outage.cables.iter().any(|&cable| {
                    !before.contains(&cable) && job.placement.may_use(&fabric, cable)
                })
            });
            prop_assert_eq!(job.affected, hit);
        }
        let first = outages.iter().map(|outage| outage.from).fold(f64::INFINITY, f64::min);
        let without = run(&jobs, policy, queue, Vec::new());
        for (job, other) in found.iter().zip(&without).take_while(|(_, other)| other.start < first) {
            prop_assert_eq!((job.job, job.start, job.finish), (other.job, other.start, other.finish));
            prop_assert_eq!(&job.placement, &other.placement);
        }
    }
}

/// By hand: leaf 0 loses both uplinks from 10 to 30. A job that runs on it and on other leaves is affected, and ends at
/// 20 as it would have. A job inside another leaf is not affected. A job of 15 nodes waits for the links. A job of 2
/// nodes runs inside the leaf.
#[test]
fn a_leaf_that_is_cut_off_still_runs_what_fits_it() {
    let jobs = workload(vec![
        job(1, 0.0, 20.0, Some(20.0), 4),
        job(2, 0.0, 20.0, Some(20.0), 2),
        job(3, 11.0, 5.0, Some(5.0), 15),
        job(4, 21.0, 5.0, Some(5.0), 14),
        job(5, 21.0, 5.0, Some(5.0), 2),
    ]);
    let outage = Outage { cables: uplinks(1, 0), from: 10.0, until: 30.0 };
    for policy in ["first-fit", "isolated", "dedicated"] {
        let found = run(&jobs, policy, "easy", vec![outage.clone()]);
        let row = |job: &JobOutcome| (job.job + 1, job.start, job.finish, job.affected);
        let mut rows: Vec<_> = found.iter().map(row).collect();
        rows.sort_by_key(|row| row.0);
        assert_eq!(rows[0].1..rows[0].2, 0.0..20.0);
        assert_eq!(rows[1], (2, 0.0, 20.0, false), "{policy}");
        assert_eq!(rows[0].3, found[0].placement.nodes().contains(&0), "{policy}");
        assert_eq!(rows[2].1, 30.0, "{policy}: fifteen nodes have to reach each other");
        assert!(rows[4].1 < 30.0, "{policy}: two are on one leaf");
    }
}

/// A link in two outages is back when both are over. A link that never comes back leaves the jobs that need it waiting,
/// and the run ends.
#[test]
fn outages_overlap_and_may_last_for_ever() {
    let jobs = workload(vec![job(1, 5.0, 1.0, Some(1.0), 16)]);
    let outage = |from, until| Outage { cables: uplinks(2, 0), from, until };
    let starts = |outages| {
        run(&jobs, "dedicated", "easy", outages).iter().map(|job| job.start).collect::<Vec<f64>>()
    };
    assert_eq!(starts(vec![outage(0.0, 20.0), outage(10.0, 40.0)]), [40.0]);
    assert_eq!(starts(vec![outage(0.0, 20.0), outage(20.0, 40.0)]), [40.0]);
    assert_eq!(starts(vec![outage(0.0, 3.0)]), [5.0]);
    assert!(starts(vec![outage(f64::NEG_INFINITY, f64::INFINITY)]).is_empty());
    assert!(starts(vec![outage(0.0, 1e15)]).is_empty());
}
