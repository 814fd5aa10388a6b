//! The traffic of a job takes the rails of its GPUs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod simulation_support;

use std::sync::Arc;

use simulation_support::network::{on, options};
use simulation_support::{logged, times, try_run, workload};
use topolane_fabric::{Fabric, read};
use topolane_placement::{Amounts, Share};

/// A machine of two leaves of two nodes, n1 to n4, on two rails that never meet, with one cable above each leaf on each
/// rail.
fn machine(gpus: u32) -> Arc<Fabric> {
    let text = format!(
        "name = \"rails\"\n[node]\nresources = {{ gpu = {gpus} }}\n[[site]]\nname = \"s\"\nnodes = \"n[1-4]\"\n\
         children = [2, 2]\nparents = [2, 1]\ncables = [1, 1]\n"
    );
    Arc::new(Fabric::build(&read::machine_toml(&text).unwrap()).unwrap())
}

/// The ends of jobs that communicate all the time and take 100 s alone. A job is its start, its hosts, and its GPUs on
/// each node or `None` for whole nodes.
fn ends(fabric: &Arc<Fabric>, routing: &str, jobs: &[(f64, &str, Option<u64>)]) -> Vec<f64> {
    let share = |gpus: Option<u64>| {
        gpus.map_or(Share::Whole, |gpus| {
            let amounts = [("cores", 1), ("gpu", gpus)];
            Share::Part(Amounts::named(fabric.resources(), amounts).unwrap())
        })
    };
    let job = |(id, &(start, hosts, gpus)): (u64, &(f64, &str, Option<u64>))| {
        let mut job = logged(id, start, 100.0, start, 2, hosts);
        job.share = share(gpus);
        job
    };
    let mut jobs = workload((1..).zip(jobs).map(job).collect());
    jobs.resources = fabric.resources().clone();
    let options = options(on(fabric, "congestion", routing, 1.0));
    let outcome = try_run(&jobs, fabric, "recorded", "fcfs", &options).unwrap();
    times(&outcome).into_iter().map(|(_, _, end)| end).collect()
}

/// Two jobs run between the same leaves, each with one GPU on each of its nodes. On one rail each gets half of it from
/// 50 s on; on two rails each has its own. The rule without rails would send both jobs by their destinations, n3 and
/// n4.
#[test]
fn jobs_on_gpus_of_different_rails_do_not_meet() {
    let fabric = machine(2);
    let same_nodes = [(0.0, "n[1,3]", Some(1)), (50.0, "n[1,3]", Some(1))];
    assert_eq!(ends(&fabric, "d-mod-k", &same_nodes), [100.0, 150.0], "GPU 0, then GPU 1");
    let other_nodes = [(0.0, "n[1,3]", Some(1)), (50.0, "n[2,4]", Some(1))];
    assert_eq!(ends(&fabric, "d-mod-k", &other_nodes), [150.0, 200.0], "both have GPU 0");
    let whole = [(0.0, "n[1,3]", None), (50.0, "n[2,4]", None)];
    assert_eq!(ends(&fabric, "d-mod-k", &whole), [150.0, 200.0], "both use both rails");
}

/// Of four GPUs on two rails, GPUs 0 and 1 are on rail 0. Jobs of two GPUs have a rail each, jobs of one GPU meet on rail 0.
#[test]
fn neighbours_share_a_rail_if_there_are_more_gpus_than_rails() {
    let fabric = machine(4);
    let two_rails = [(0.0, "n[1,3]", Some(2)), (50.0, "n[1,3]", Some(2))];
    assert_eq!(ends(&fabric, "d-mod-k", &two_rails), [100.0, 150.0]);
    let same_rail = [(0.0, "n[1,3]", Some(1)), (50.0, "n[1,3]", Some(1))];
    assert_eq!(ends(&fabric, "d-mod-k", &same_rail), [150.0, 200.0]);
}

/// A job with links of its own on every rail is as fast as a job that is alone, because its tables also spread it over
/// the rails.
#[test]
fn own_links_are_as_fast_as_all_links_alone() {
    let fabric = machine(2);
    let jobs = workload(vec![logged(1, 0.0, 100.0, 0.0, 4, "n[1-4]")]);
    let options = options(on(&fabric, "congestion", "d-mod-k", 1.0));
    let outcome = try_run(&jobs, &fabric, "dedicated", "fcfs", &options).unwrap();
    assert_eq!(times(&outcome), [(0, 0.0, 100.0)]);
}
