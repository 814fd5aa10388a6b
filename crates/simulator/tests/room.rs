//! How many more jobs would have fitted on a machine with GPUs in the course of a run.

#![allow(clippy::unwrap_used, clippy::float_cmp)] // Helpers may fail; values are exact.

use std::sync::Arc;

use topolane_fabric::resources::Resources;
use topolane_fabric::{Fabric, InputError, preset};
use topolane_placement::{Amounts, Share, policy};
use topolane_simulator::workload::{Job, Workload};
use topolane_simulator::{Metrics, Outcome, RunOptions, Summary, simulate};

fn job(id: u64, submit: f64, run: f64, nodes: u32) -> Job {
    Job { id, submit, run, nodes, ..Job::default() }
}

fn run(machine: &str, jobs: Vec<Job>) -> (Workload, Arc<Fabric>, Outcome) {
    let fabric = Arc::new(Fabric::build(&preset(machine).unwrap().unwrap()).unwrap());
    let workload = Workload { jobs, ..Workload::default() };
    let first_fit = Arc::from(policy("first-fit", 0).unwrap());
    let queue = topolane_scheduler::queue("easy").unwrap();
    let outcome = simulate::<InputError>(
        &workload,
        &fabric,
        &first_fit,
        queue,
        &RunOptions::default(),
        &mut |_| Ok(()),
    )
    .unwrap();
    (workload, fabric, outcome)
}

#[test]
fn the_largest_job_could_have_started_while_enough_nodes_were_idle() {
    // On 144 nodes, one job holds 100 for the first half of the time. Another job of 100 nodes comes at the end.
    let (workload, fabric, outcome) =
        run("nvl72(units=1)", vec![job(1, 0.0, 7_200.0, 100), job(2, 14_400.0, 60.0, 100)]);
    let room = outcome.room.clone().unwrap();
    assert_eq!((room.largest.id, room.largest.nodes), (2, 100));
    assert!((room.largest.share_of_time - 0.5).abs() < 0.002, "{room:?}");
    // In the first half 44 nodes are idle, in the second all 144.
    assert!((room.free / 4.0 - 94.0).abs() < 0.2, "{room:?}");
    let of_two_nodes = room.fits.iter().find(|fit| fit.size == 8).unwrap();
    let racks = room.levels.iter().position(|level| level == "domain").unwrap();
    // First fit leaves 44 idle nodes in racks of 8, 18 and 18.
    assert!((of_two_nodes.jobs[racks] - f64::from(22 + 72) / 2.0).abs() < 0.2, "{room:?}");
    assert!(of_two_nodes.share_of_time[racks] == 1.0);
    let metrics = Metrics::of(&workload, &fabric, &outcome);
    let summary =
        Summary::of(&workload, fabric.nodes(), &outcome, &metrics, &RunOptions::default());
    assert_eq!(summary.room, Some(room));
}

#[test]
fn the_load_of_the_gpus_counts_parts_of_nodes_as_parts() {
    // On 144 nodes of 4 GPUs, a job on two whole nodes for 100 s and one on one GPU for 400 s are 1,200 GPU-seconds,
    // within 10 s.
    let mut resources = Resources::default();
    let gpu = resources.add("gpu").unwrap();
    let mut amounts = vec![0; resources.names().len()];
    amounts[topolane_fabric::resources::CORES] = 1;
    amounts[gpu] = 1;
    let part = Share::Part(Amounts::of(&amounts));
    let (mut workload, fabric, outcome) = run("nvl72(units=1)", vec![job(1, 0.0, 100.0, 2)]);
    workload.jobs.push(Job { share: part, ..job(2, 10.0, 400.0, 1) });
    workload.resources = resources;
    let load = Metrics::of(&workload, &fabric, &outcome).gpu_load.unwrap();
    assert!((load / (1_200.0 / (576.0 * 10.0)) - 1.0).abs() < 1e-12, "{load}");
    // In the load of the nodes, all nodes of both jobs count.
    assert!((workload.load(144) / (600.0 / (144.0 * 10.0)) - 1.0).abs() < 1e-12);
}

#[test]
fn a_machine_without_gpus_has_no_such_figures() {
    let jobs = vec![job(1, 0.0, 60.0, 1), job(2, 5.0, 60.0, 1)];
    let (workload, fabric, outcome) = run("fat-tree(radix=4)", jobs);
    assert_eq!(outcome.room, None);
    assert_eq!(Metrics::of(&workload, &fabric, &outcome).gpu_load, None);
}
