//! Counted resources of jobs: read from logs, written, and placed on machines that count them or do not.
#![allow(clippy::unwrap_used)]

mod simulation_support;

use std::sync::Arc;

use simulation_support::run;
use topolane_fabric::{Fabric, read::machine_toml};
use topolane_placement::{Lack, Refusal, Share};
use topolane_simulator::workload::{ReadOptions, Workload, csv, sacct, to_csv, to_swf};

fn read(text: &str) -> Result<Workload, String> {
    csv(text.as_bytes()).map_err(|error| error.to_string())
}

fn read_sacct(tres: &str, nodes: u32) -> Result<Workload, String> {
    let text = format!(
        "Submit|Start|ElapsedRaw|NNodes|NCPUS|AllocTRES|ReqTRES\n1|1|1|{nodes}|{nodes}|{tres}\n"
    );
    let options = ReadOptions { shared: true, ..ReadOptions::default() };
    sacct(text.as_bytes(), &options).map_err(|error| error.to_string())
}

/// What each job takes of a node, by resource name; `None` for whole nodes.
fn taken(workload: &Workload) -> Vec<Option<Vec<(&str, u64)>>> {
    let by_name = |share| match share {
        &Share::Whole => None,
        Share::Part(amounts) => Some(amounts.by_name(&workload.resources).collect()),
    };
    workload.jobs.iter().map(|job| by_name(&job.share)).collect()
}

/// A value in one of these columns, even 0, makes a job share its nodes. If the row has nothing else, the job has one
/// core.
#[test]
fn columns_of_a_csv_count_resources() {
    let text = "id,submit,run,nodes,cores,memory,gpus_per_node,resource:nic,resource:gpu:h100\n\
                1,0,1,2,4,100,2,,\n2,0,1,2,,,,,3\n3,0,1,2,,,,,\n4,0,1,2,,7,0,1,\n5,0,1,2,2,,3,,1\n";
    let workload = read(text).unwrap();
    let expected = [
        Some(vec![("cores", 4), ("memory", 100), ("gpu", 2)]),
        Some(vec![("cores", 1), ("gpu", 3), ("gpu:h100", 3)]),
        None,
        Some(vec![("cores", 1), ("memory", 7), ("nic", 1)]),
        Some(vec![("cores", 2), ("gpu", 3), ("gpu:h100", 1)]),
    ];
    assert_eq!(taken(&workload), expected);
    let again = read(&to_csv(&workload).unwrap()).unwrap();
    assert_eq!((&again.jobs, &again.resources), (&workload.jobs, &workload.resources));
    assert!(to_swf(&workload).is_err(), "the format has no word for it");
}

/// A bad value is refused in one sentence with the line, the column and the value.
#[test]
fn bad_columns_are_refused() {
    let with = |column: &str, value: &str| {
        read(&format!("id,submit,run,nodes,{column}\n1,0,1,1,{value}\n")).unwrap_err()
    };
    for (column, value, wanted) in [
        ("gpus", "-1", "line 2: gpus '-1' is not a count"),
        ("gpus", "1.5", "line 2: gpus 1.5: a job takes whole GPUs, or a part of one below 1"),
        ("gpus", "0.0004", "line 2: gpus 0.0004 is less than a thousandth of a GPU"),
        ("gpus", "-.5", "line 2: gpus '-.5' is not a number of GPUs"),
        ("gpus,gpu_type", "0,a", "line 2: gpu_type 'a' without gpus"),
        ("gpu_type", "a", "line 2: gpu_type 'a' without gpus"),
        ("gpus,gpu_type", "1,a b", "line 2: \"gpu:a b\" is no name of a resource"),
        ("gpus,resource:gpu:a", "0.5,2", "line 2: 0.5 of a GPU and 2 whole ones for one job"),
        ("segment", "0", "line 2: segment '0' is not a whole number"),
        ("gpus", "many", "line 2: gpus 'many' is not a count"),
        ("gpus", "99999999999999999999", "line 2: gpus '99999999999999999999' is not a count"),
        ("resource:nic", "P", "line 2: resource:nic 'P' is not a count"),
        ("resource:", "1", "line 1: \"\" is no name of a resource"),
        ("resource:a b", "1", "line 1: \"a b\" is no name of a resource"),
        ("resource:gpu:", "1", "line 1: \"gpu:\" is no name of a resource"),
        ("resource:cores", "1", "line 1: column resource:cores: cores has a column of its own"),
        ("gpus,resource:gpu", "1,1", "line 1: two columns for resource gpu"),
        ("memory,gpus", "1,", "line 2: memory without cores"),
    ] {
        let error = with(column, value);
        assert!(error.starts_with(wanted), "{column}: {error}");
    }
}

/// `AllocTRES` is read first. Each node has an even part of it, rounded up. Other resources are passed over.
#[test]
fn generic_resources_of_sacct_are_read() {
    let of = |tres, nodes| {
        let workload = read_sacct(tres, nodes)?;
        Ok(taken(&workload)[0].clone().unwrap()[1..]
            .iter()
            .map(|&(n, c)| (n.to_owned(), c))
            .collect())
    };
    let part = |counts: &[(&str, u64)]| -> Result<Vec<(String, u64)>, String> {
        Ok(counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect())
    };
    let both = "billing=8,cpu=8,energy=5,gres/gpu:h100=4,gres/gpu=4,mem=4G,node=2|gres/gpu=9";
    assert_eq!(of(both, 2), part(&[("gpu", 2), ("gpu:h100", 2)]));
    assert_eq!(of("|cpu=1,gres/gpu=3", 2), part(&[("gpu", 2)]), "as requested, rounded up");
    assert_eq!(
        of("gres/gpu:a=2,gres/gpu:b=1|", 1),
        part(&[("gpu", 3), ("gpu:a", 2), ("gpu:b", 1)])
    );
    assert_eq!(of("gres/craynetwork|", 1), part(&[("craynetwork", 1)]));
    assert_eq!(of("gres/gpumem=2G|", 1), part(&[("gpumem", 2 << 30)]));
    assert_eq!(of("cpu=4,fs/disk=7,license/x=1|", 1), part(&[]));
    let error = of("gres/gpu=-1|", 1).unwrap_err();
    assert_eq!(error, "line 2: gres/gpu '-1' is not a count of a resource");
    assert!(of("gres/a b=1|", 1).unwrap_err().contains("\"a b\" is no name of a resource"));
}

/// Jobs that share nodes run together as far as every resource allows. A job that asks for what no node has is refused
/// with the name of the resource, and delays no other.
#[test]
fn jobs_wait_for_resources_that_others_hold() {
    let machine = |resources: &str| {
        let text = format!(
            "name = \"m\"\n[node]\nresources = {{ nic = 1, {resources} }}\n[[site]]\nname = \"s\"\nchildren = [1]\n"
        );
        Arc::new(Fabric::build(&machine_toml(&text).unwrap()).unwrap())
    };
    let jobs = read(
        "id,submit,run,nodes,cores,gpus,resource:gpu:a\n\
         1,0,10,1,1,3,\n2,0,10,1,1,,1\n3,0,10,1,1,1,\n4,0,10,1,1,0,\n5,0,10,1,1,,2\n",
    )
    .unwrap();
    for discipline in ["fcfs", "easy", "conservative"] {
        let outcome = run(&jobs, &machine("gpu = 4, \"gpu:a\" = 1"), "first-fit", discipline);
        let refused = Refusal::Lacks(Lack { resource: "gpu:a".into(), wanted: 2, most: 1 });
        assert_eq!(outcome.refused, [(4, refused)], "{discipline}");
        let mut starts: Vec<_> = outcome.jobs.iter().map(|job| (job.job, job.start)).collect();
        starts.sort_by_key(|&(job, _)| job);
        let fourth = if discipline == "fcfs" { 10.0 } else { 0.0 };
        assert_eq!(starts, [(0, 0.0), (1, 0.0), (2, 10.0), (3, fourth)], "{discipline}");
        let outcome = run(&jobs, &machine(""), "first-fit", discipline);
        let refused: Vec<usize> = outcome.refused.iter().map(|(job, _)| *job).collect();
        assert_eq!(refused, [0, 1, 2, 4], "{discipline}: no node has a GPU");
        let why = outcome.refused[0].1.to_string();
        assert_eq!(why, "never fits: 3 of resource gpu wanted on each node, no node has any");
    }
}
