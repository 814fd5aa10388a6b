//! The measures of a run, by hand and by a second, independent count.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod simulation_support;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use simulation_support::{PLAIN, description, job, jobs, run, tree, workload};
use topolane_fabric::{Fabric, MissingCable, WanDescription};
use topolane_placement::{Placement, Share, least_aph};
use topolane_simulator::workload::Workload;
use topolane_simulator::{JobOutcome, Metrics, Minute, Outcome, SIZE_BINS, utilization};

/// A run on four nodes. Job 1 holds 2 nodes from 0 to 100. Job 2 holds all from 100 to 160, after a wait of 70. Job 3
/// holds one from 160 to 165, after a wait of 110.
fn by_hand() -> (Workload, Arc<Fabric>, Outcome) {
    let jobs = workload(vec![
        job(11, 0.0, 100.0, Some(100.0), 2),
        job(12, 30.0, 60.0, Some(90.0), 4),
        job(13, 50.0, 9.0, Some(5.0), 1),
    ]);
    let fabric = tree(&[2, 2]);
    let outcome = run(&jobs, &fabric, "first-fit", "fcfs");
    (jobs, fabric, outcome)
}

/// Utilisation is node-seconds held divided by nodes times makespan. The makespan is from the first submission to the
/// last end. Utilisation while jobs wait is the same over the seconds in which any job waits.
#[test]
fn utilisation_and_makespan_by_hand() {
    let (jobs, fabric, outcome) = by_hand();
    let metrics = Metrics::of(&jobs, &fabric, &outcome);
    assert_eq!(metrics.makespan, 165.0);
    assert_eq!(metrics.utilization, (200.0 + 240.0 + 5.0) / (4.0 * 165.0));
    assert_eq!(metrics.utilization_while_waiting, (140.0 + 240.0) / (4.0 * 130.0));
    let minute = |time, busy_nodes, waiting_jobs| Minute { time, busy_nodes, waiting_jobs };
    assert_eq!(metrics.minutes, [minute(0.0, 2.0, 0), minute(60.0, 2.0, 2), minute(120.0, 4.0, 1)]);
}

/// Wait is start minus submission; bounded slowdown is (wait + run) / max(run, 10 s), at least 1.
#[test]
fn wait_and_slowdown_by_hand() {
    let (jobs, fabric, outcome) = by_hand();
    let metrics = Metrics::of(&jobs, &fabric, &outcome);
    assert_eq!(metrics.wait, [0.0, 70.0, 110.0]);
    assert_eq!(metrics.slowdown, [1.0, 130.0 / 60.0, 115.0 / 10.0]);
    let short = workload(vec![job(1, 0.0, 3.0, None, 1)]);
    let outcome = run(&short, &fabric, "first-fit", "fcfs");
    assert_eq!(Metrics::of(&short, &fabric, &outcome).slowdown, [1.0]);
}

/// Size bins are those of the SC'18 figures. Their upper ends are inclusive, and the last bin is open.
#[test]
fn wait_bins_have_inclusive_upper_ends() {
    let sizes = [1, 2, 4, 5, 18, 19, 64, 65, 128, 129, 256, 257, 300];
    // All jobs wait for the first, which holds the whole machine for 100 s.
    let mut all = vec![job(0, 0.0, 100.0, None, 300)];
    all.extend(
        (1..).zip(sizes).map(|(id, nodes)| job(id, f64::from(nodes) / 10.0, 0.0, None, nodes)),
    );
    let (jobs, fabric) = (workload(all), tree(&[300]));
    let metrics = Metrics::of(&jobs, &fabric, &run(&jobs, &fabric, "first-fit", "fcfs"));
    let bins: Vec<_> =
        metrics.wait_by_size.iter().map(|bin| (bin.low, bin.high, bin.jobs)).collect();
    assert_eq!(SIZE_BINS, [1, 4, 18, 64, 128, 256]);
    let expected = [
        (1, 1, 1),
        (2, 4, 2),
        (5, 18, 2),
        (19, 64, 2),
        (65, 128, 2),
        (129, 256, 2),
        (257, u32::MAX, 3),
    ];
    assert_eq!(bins, expected);
    assert!((metrics.wait_by_size[1].mean_wait - 99.7).abs() < 1e-9);
}

/// `jobs.csv` and `utilization.csv` are as expected, to the byte.
#[test]
fn tables_to_the_byte() {
    let (jobs, fabric, outcome) = by_hand();
    let mut jobs = jobs;
    jobs.name = "a,\"b\"".to_owned();
    let metrics = Metrics::of(&jobs, &fabric, &outcome);
    let (mut table, mut minutes) = (Vec::new(), Vec::new());
    topolane_simulator::jobs(&jobs, &outcome, &metrics, &PLAIN).write_csv(&mut table).unwrap();
    utilization(fabric.nodes(), &metrics).write_csv(&mut minutes).unwrap();
    let expected = "job_id,workload_name,profile,submission_time,requested_number_of_resources,\
        requested_time,success,final_state,starting_time,execution_time,finish_time,waiting_time,\
        turnaround_time,stretch,allocated_resources,consumed_energy,metadata,slowdown,aph,least_aph,\
        hop_bytes,links_shared,pattern,contention\n\
        11,\"a,\"\"b\"\"\",run,0,2,100,1,COMPLETED_SUCCESSFULLY,0,100,100,0,100,1,0-1,-1,,1,0,0,0,0,,1.000000\n\
        12,\"a,\"\"b\"\"\",run,30,4,90,1,COMPLETED_SUCCESSFULLY,100,60,160,70,130,2.166667,0-3,-1,,\
        2.166667,1.333333,1.333333,8,0,,1.000000\n\
        13,\"a,\"\"b\"\"\",run,50,1,5,0,COMPLETED_WALLTIME_REACHED,160,5,165,110,115,23,0,-1,,11.500000,0,0,0,0,,1.000000\n";
    assert_eq!(String::from_utf8(table).unwrap(), expected);
    let expected = "time,busy_nodes,waiting_jobs,utilization\n0,2,0,0.50000\n60,2,2,0.50000\n120,4,1,1.00000\n";
    assert_eq!(String::from_utf8(minutes).unwrap(), expected);
}

/// Nodes are written as ascending intervals; a node of several slots is written once.
#[test]
fn nodes_are_written_as_intervals() {
    let jobs = workload(vec![job(1, 0.0, 1.0, None, 5)]);
    let fabric = tree(&[2, 4]);
    let outcome = run(&jobs, &fabric, "scattered", "fcfs");
    let metrics = Metrics::of(&jobs, &fabric, &outcome);
    let mut table = Vec::new();
    topolane_simulator::jobs(&jobs, &outcome, &metrics, &PLAIN).write_csv(&mut table).unwrap();
    let row = String::from_utf8(table).unwrap().lines().nth(1).unwrap().to_owned();
    assert_eq!(row.split(',').nth(14), Some("0-2 4 6"), "{row}");
}

/// The nodes that a job holds; a shared node counts by the part of its cores.
fn held(job: &JobOutcome, fabric: &Fabric) -> f64 {
    let share = |node: &u32| match job.placement.share() {
        Share::Whole => 1.0,
        Share::Part(amounts) => amounts.cores() as f64 / f64::from(fabric.kind(*node).cores()),
    };
    job.placement.nodes().iter().map(share).sum()
}

/// The links that a job may use: all uplinks of every group that it crosses, the links of its nodes if it has several
/// nodes, and every WAN link on a shortest way between two of its sites. A job that owns uplinks uses no others.
fn links(job: &JobOutcome, fabric: &Fabric) -> BTreeSet<u32> {
    let nodes = job.placement.nodes();
    let mut links = BTreeSet::new();
    for level in 0..fabric.depth() {
        for &node in nodes {
            let group = fabric.group(level, node);
            if nodes.iter().any(|&other| fabric.group(level, other) != group) {
                links.extend(fabric.uplinks(level, group).filter(|&cable| fabric.has_cable(cable)));
            }
        }
    }
    let own = job.placement.links();
    if !own.is_empty() {
        links.retain(|&link| fabric.cable_place(link).is_none_or(|(level, ..)| level == 0));
        links.extend(own);
    }
    let site = |node: u32| fabric.group(fabric.depth(), node);
    for (a, b) in nodes.iter().flat_map(|&a| nodes.iter().map(move |&b| (site(a), site(b)))) {
        for (id, (x, y), ..) in fabric.wans() {
            let way = |a, b| fabric.site_hops(a, b).unwrap();
            if way(a, x) + 1 + way(y, b) == way(a, b) {
                links.insert(id);
            }
        }
    }
    links
}

/// Two jobs that own links share only links that both own. A job that owns no links may meet one that owns some on all
/// links of the latter, and on no others.
#[test]
fn jobs_that_own_links_share_only_what_both_own() {
    let fabric = tree(&[4, 2, 2]);
    let links = |of: &[(u32, u32)]| -> Vec<u32> {
        of.iter().map(|&(leaf, number)| fabric.uplinks(1, leaf).start + number).collect()
    };
    let shared = |one: &[(u32, u32)], other: &[(u32, u32)]| {
        let ran = |nodes: Vec<u32>, own: &[(u32, u32)]| {
            let placement = Placement::new(&fabric, nodes, Share::Whole);
            Arc::new(placement.with_links(&fabric, links(own), 1.0))
        };
        let jobs = workload(vec![job(1, 0.0, 9.0, None, 2), job(2, 0.0, 9.0, None, 2)]);
        let mut outcome = run(&jobs, &fabric, "first-fit", "fcfs");
        outcome.jobs[0].placement = ran(vec![0, 4], one);
        outcome.jobs[1].placement = ran(vec![1, 5], other);
        Metrics::of(&jobs, &fabric, &outcome).links_shared
    };
    let (first, second) = ([(0, 0), (1, 0)], [(0, 1), (1, 1)]);
    assert_eq!(fabric.uplinks(1, 0).len(), 2);
    assert_eq!(shared(&[], &[]), [4, 4]);
    assert_eq!(shared(&first, &second), [0, 0]);
    assert_eq!(shared(&first, &first), [2, 2]);
    assert_eq!(shared(&first, &[(0, 0), (1, 1)]), [1, 1]);
    assert_eq!(shared(&first, &[]), [2, 2]);
}

/// Three sites in a chain, of which the second is deeper, without the missing cables.
fn three_sites(missing: &[Index]) -> Arc<Fabric> {
    let mut machine = description(&[2, 3]);
    for (number, children) in [(1, vec![2, 2, 2]), (2, vec![3, 1])] {
        let mut other = description(&children).sites.remove(0);
        rename(&mut other.root, number);
        machine.sites.push(other);
    }
    let names: Vec<String> = machine.sites.iter().map(|site| site.root.name.clone()).collect();
    for pair in names.windows(2) {
        let between = (pair[0].clone(), pair[1].clone());
        machine.wans.push(WanDescription { between, latency: 0.0, bandwidth: 1e9 });
    }
    for index in missing {
        let (leaf, parent) = (index.index(6) as u32 / 2, index.index(6) as u32 % 2);
        machine.sites[0].missing.push(MissingCable {
            level: 1,
            group: leaf,
            switch: 0,
            parent,
            cable: 0,
        });
    }
    Arc::new(Fabric::build(&machine).unwrap())
}

/// Gives all names of a tree a suffix.
fn rename(group: &mut topolane_fabric::Group, number: u32) {
    group.name = format!("{}s{number}", group.name);
    match &mut group.children {
        topolane_fabric::Children::Nodes(nodes) => {
            for node in nodes {
                node.name = format!("{}s{number}", node.name);
            }
        }
        topolane_fabric::Children::Groups(groups) => {
            for group in groups {
                rename(group, number);
            }
        }
    }
}

fn overlap(a: &JobOutcome, b: &JobOutcome) -> bool {
    a.start < a.finish && b.start < b.finish && a.start < b.finish && b.start < a.finish
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A job shares a link if another job that runs at the same time may use it too. This is counted over all pairs of
    /// jobs, on machines of one site and of three, with cables missing and nodes shared. Under isolation no link is
    /// shared, be it isolation by groups or by single links.
    #[test]
    fn links_shared_are_those_of_all_overlapping_pairs(
        jobs in jobs(10, true),
        missing in prop::collection::vec(any::<Index>(), 0..4),
        sites in any::<bool>(),
    ) {
        let fabric = if sites { three_sites(&missing) } else { tree(&[2, 3, 3]) };
        for policy in ["scattered", "first-fit", "random", "isolated", "dedicated"] {
            let outcome = run(&jobs, &fabric, policy, "easy");
            let metrics = Metrics::of(&jobs, &fabric, &outcome);
            for (index, job) in outcome.jobs.iter().enumerate() {
                let others = outcome.jobs.iter().enumerate().filter(|&(other, _)| other != index);
                let theirs: BTreeSet<u32> = others
                    .filter(|(_, other)| overlap(job, other))
                    .flat_map(|(_, other)| links(other, &fabric))
                    .collect();
                let shared = links(job, &fabric).intersection(&theirs).count() as u32;
                prop_assert_eq!(metrics.links_shared[index], shared, "{}: job {}", policy, index);
                prop_assert!(shared == 0 || !["isolated", "dedicated"].contains(&policy));
            }
        }
    }

    /// Utilisation, minutes, waits and APH equal those counted from the list of jobs.
    #[test]
    fn measures_are_those_counted_from_the_jobs(jobs in jobs(18, true)) {
        let fabric = tree(&[3, 3, 2]);
        let outcome = run(&jobs, &fabric, "hop-bytes", "easy");
        let metrics = Metrics::of(&jobs, &fabric, &outcome);
        let submit = |job: &JobOutcome| jobs.jobs[job.job].submit;
        let first = outcome.jobs.iter().map(submit).fold(f64::MAX, f64::min);
        let last = outcome.jobs.iter().map(|job| job.finish).fold(0.0, f64::max);
        prop_assert_eq!(metrics.makespan, last - first);
        let used: f64 = outcome.jobs.iter().map(|job| held(job, &fabric) * (job.finish - job.start)).sum();
        prop_assert!(last == first || (metrics.utilization - used / (18.0 * (last - first))).abs() < 1e-9);
        // The state at a full minute is the state after all events of that moment.
        let minutes = (0..100).map(|minute| 60.0 * f64::from(minute)).filter(|&t| t >= first && t < last);
        let expected: Vec<(f64, f64, u32)> = minutes
            .map(|t| {
                let busy = outcome.jobs.iter().filter(|job| job.start <= t && t < job.finish);
                let waiting = outcome.jobs.iter().filter(|job| submit(job) <= t && t < job.start);
                (t, busy.map(|job| held(job, &fabric)).sum(), waiting.count() as u32)
            })
            .collect();
        prop_assert_eq!(metrics.minutes.len(), expected.len());
        for (minute, (time, busy, waiting)) in metrics.minutes.iter().zip(expected) {
            prop_assert_eq!((minute.time, minute.waiting_jobs), (time, waiting));
            prop_assert!((minute.busy_nodes - busy).abs() < 1e-9);
        }
        let jobs_in_bins: u64 = metrics.wait_by_size.iter().map(|bin| bin.jobs).sum();
        let waits: f64 = metrics.wait_by_size.iter().map(|bin| bin.mean_wait * bin.jobs as f64).sum();
        prop_assert_eq!(jobs_in_bins as usize, outcome.jobs.len());
        prop_assert!((waits - metrics.wait.iter().sum::<f64>()).abs() < 1e-6);
        let least = least_aph(&fabric);
        for (job, (aph, bound)) in outcome.jobs.iter().zip(metrics.aph.iter().zip(&metrics.least_aph)) {
            prop_assert_eq!(*bound, least[job.placement.nodes().len() - 1]);
            prop_assert!(aph + 1e-12 >= *bound);
        }
    }
}
