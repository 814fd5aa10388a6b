//! GPUs of jobs: in all or on each node, whole or a part of one, of one type or of several. Also the traces of GPU
//! clusters.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod simulation_support;

use std::path::PathBuf;
use std::sync::Arc;

use simulation_support::run;
use topolane_fabric::{Fabric, read::machine_toml};
use topolane_placement::{Lack, Refusal, Share};
use topolane_simulator::workload::{self, Job, ReadOptions, Workload, csv, openb, rfold, to_csv};

fn read(text: &str) -> Result<Workload, String> {
    csv(text.as_bytes()).map_err(|error| error.to_string())
}

/// The nodes of a job, the thousandths of GPUs on each, and their type.
fn asked(workload: &Workload, job: &Job) -> (u32, Option<u64>, Option<String>) {
    let Share::Part(amounts) = &job.share else { return (job.nodes, None, None) };
    let names = workload.resources.names();
    let mut kinds = amounts.by_name(&workload.resources).map(|(name, _)| name.to_owned());
    let part = amounts.gpu_part().map(|part| names[part.resource()].clone());
    let kind = part.or_else(|| kinds.find(|name| name.starts_with("gpu:")));
    let kind = kind.and_then(|name| name.strip_prefix("gpu:").map(str::to_owned));
    (job.nodes, Some(amounts.gpu_thousandths(&workload.resources)), kind)
}

/// `gpus` counts those of the whole job. With the nodes or with `gpus_per_node`, it gives the number on each node.
#[test]
fn gpus_in_all_or_on_each_node() {
    let with = |nodes: &str, gpus: &str, per_node: &str| {
        let text =
            format!("id,submit,run,nodes,gpus,gpus_per_node\n1,0,1,{nodes},{gpus},{per_node}\n");
        read(&text).map(|workload| {
            let (nodes, gpus, _) = asked(&workload, &workload.jobs[0]);
            (nodes, gpus)
        })
    };
    assert_eq!(with("2", "16", ""), Ok((2, Some(8000))));
    assert_eq!(with("", "16", "8"), Ok((2, Some(8000))));
    assert_eq!(with("2", "16", "8"), Ok((2, Some(8000))));
    assert_eq!(with("2", "", "8"), Ok((2, Some(8000))));
    assert_eq!(with("1", "0.46", ""), Ok((1, Some(460))));
    assert_eq!(with("3", "", "0.5"), Ok((3, Some(500))), "half of one on each node");
    assert_eq!(
        with("", "1.5", "0.5"),
        Err("line 2: gpus 1.5: a job takes whole GPUs, or a part of one below 1".into())
    );
    assert_eq!(with("", "1", "0.5"), Ok((2, Some(500))));
    assert_eq!(with("2", "", ""), Ok((2, None)), "whole nodes");
    assert_eq!(with("2", "0", "0"), Ok((2, Some(0))), "shares its nodes");
    for (nodes, gpus, per_node, why) in [
        ("2", "7", "", "gpus 7 cannot be divided among 2 nodes"),
        ("2", "1", "", "gpus 1 cannot be divided among 2 nodes"),
        ("", "10", "4", "gpus 10 cannot be divided by gpus_per_node 4"),
        ("", "10", "0", "gpus 10 cannot be divided by gpus_per_node 0"),
        ("3", "16", "8", "gpus 16 are not gpus_per_node 8 on 3 nodes"),
        ("", "16", "", "gpus 16 without nodes or gpus_per_node"),
        ("", "", "4", "a job without nodes"),
        ("1", "1.25", "", "gpus 1.25: a job takes whole GPUs, or a part of one below 1"),
    ] {
        assert_eq!(with(nodes, gpus, per_node), Err(format!("line 2: {why}")));
    }
    let short = read("id,submit,run,gpus,gpus_per_node\n1,0,1,16,4\n").unwrap();
    assert_eq!(asked(&short, &short.jobs[0]).0, 4, "no column nodes is needed");
    assert!(read("id,submit,run,gpus\n1,0,1,16\n").unwrap_err().contains("no column nodes"));
}

/// GPU types, several types, parts and segments are read back as they were written.
#[test]
fn gpus_are_written_and_read_back() {
    let text = "id,submit,run,nodes,gpus_per_node,resource:nic,gpu_type,segment\n\
                1,0,1,2,4,1,h100,\n2,0,1,1,0.25,,t4,\n3,0,1,1,2,,b|a|b,\n4,0,1,32,,,,16\n5,0,1,1,0.125,,,\n";
    let workload = read(text).unwrap();
    let kind = |kind: &str| Some(kind.to_owned());
    let all: Vec<_> = workload.jobs.iter().map(|job| asked(&workload, job)).collect();
    assert_eq!(
        all,
        [
            (2, Some(4000), kind("h100")),
            (1, Some(250), kind("t4")),
            (1, Some(2000), None),
            (32, None, None),
            (1, Some(125), None)
        ]
    );
    assert_eq!(workload.jobs[2].gpu_types.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
    assert_eq!(workload.jobs[3].segment, Some(16));
    let again = read(&to_csv(&workload).unwrap()).unwrap();
    assert_eq!((&again.jobs, &again.resources), (&workload.jobs, &workload.resources));
}

/// Parts of a GPU and types are placed. Parts share a GPU, and a job of several types goes where there is one of them.
/// A type that no node has is refused with its name.
#[test]
fn jobs_run_on_gpus_of_their_types() {
    let text = "name = \"m\"\n[node]\nsockets = 1\ncores-per-socket = 8\nresources = { gpu = 1, \"gpu:a\" = 1 }\n\
                [[node-kind]]\nnodes = \"m2\"\nresources = { gpu = 1, \"gpu:b\" = 1 }\n[[site]]\nname = \"s\"\nchildren = [3]\n";
    let machine = Arc::new(Fabric::build(&machine_toml(text).unwrap()).unwrap());
    let jobs = read(
        "id,submit,run,nodes,gpus,gpu_type\n1,0,10,1,0.6,\n2,0,10,1,0.4,\n3,0,10,1,0.6,b|c\n4,0,10,1,1,c\n5,0,10,1,1,c|d\n\
         6,0,10,1,0.5,c\n7,0,10,1,0.6,a\n8,0,10,1,0.5,a\n",
    )
    .unwrap();
    for discipline in ["fcfs", "easy", "conservative"] {
        let outcome = run(&jobs, &machine, "first-fit", discipline);
        let lacks =
            |name: &str, wanted| Refusal::Lacks(Lack { resource: name.into(), wanted, most: 0 });
        let refused = [(3, lacks("gpu:c", 1)), (4, lacks("gpu:c|d", 1)), (5, lacks("gpu:c", 1))];
        assert_eq!(outcome.refused, refused, "{discipline}");
        let mut placed: Vec<_> =
            outcome.jobs.iter().map(|job| (job.job, job.start, job.placement.nodes()[0])).collect();
        placed.sort_by_key(|&(job, ..)| job);
        assert_eq!(
            placed,
            [(0, 0.0, 0), (1, 0.0, 0), (2, 0.0, 1), (6, 0.0, 2), (7, 10.0, 0)],
            "{discipline}"
        );
    }
}

/// Philly and Lingjun count GPUs: a job of fewer GPUs than a node has shares a node, and others take whole nodes.
#[test]
fn traces_that_count_gpus_need_the_gpus_of_a_node() {
    let text = "#job id,arrival time (sec),topology,shape,size,duration (sec)\n\
                7,0.0,CLOS,1,1,5.0\n8,1.5,CLOS,8,8,2.0\n9,2.0,CLOS,12,12,3.0\n";
    let options = |gpus_per_node| ReadOptions { gpus_per_node, ..ReadOptions::default() };
    let jobs = rfold(text.as_bytes(), &options(Some(8))).unwrap();
    let all: Vec<_> = jobs.jobs.iter().map(|job| (job.id, asked(&jobs, job))).collect();
    assert_eq!(all, [(7, (1, Some(1000), None)), (8, (1, None, None)), (9, (2, None, None))]);
    let error = rfold(text.as_bytes(), &options(None)).unwrap_err().to_string();
    assert_eq!(
        error,
        "the log counts GPUs, not nodes: say how many a node has with --gpus-per-node"
    );
    let bad = text.replace(",12,12,", ",12,x,");
    let error = rfold(bad.as_bytes(), &options(Some(8))).unwrap_err().to_string();
    assert!(error.starts_with("line 4: size 'x' is not a whole number"), "{error}");
}

/// Tasks of openb become jobs with thousandths of processors rounded up, mebibytes, whole GPUs or a part of one, and
/// types.
#[test]
fn tasks_of_openb_are_jobs() {
    const HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";
    let text = format!(
        "{HEADER}\nopenb-pod-0003,11908,2,1,460,,LS,Running,5,30,10\nopenb-pod-0004,1000,1,8,1000,T4,BE,Failed,6,9,7\n\
         openb-pod-0005,1000,1,0,0,,BE,Failed,6,9,7\nopenb-pod-0006,1000,1,1,1000,B|A,BE,Pending,6,9,\n\
         openb-pod-0007,1000,1,1,1000,B|A,BE,Running,6,9,8\n"
    );
    let jobs = openb(text.as_bytes()).unwrap();
    assert_eq!(jobs.left_out.get("never started"), Some(&1));
    let first = &jobs.jobs[0];
    let Share::Part(amounts) = &first.share else { panic!("it shares a node") };
    assert_eq!((amounts.cores(), amounts.memory()), (12, 2 << 20));
    assert_eq!((first.id, first.submit, first.run), (3, 5.0, 20.0));
    assert_eq!(first.recorded.as_ref().map(|recorded| recorded.start), Some(10.0));
    let all: Vec<_> = jobs.jobs.iter().map(|job| asked(&jobs, job)).collect();
    assert_eq!(
        all,
        [
            (1, Some(460), None),
            (1, Some(8000), Some("T4".into())),
            (1, Some(0), None),
            (1, Some(1000), None)
        ]
    );
    assert_eq!(jobs.jobs[3].gpu_types.as_deref(), Some(&["A".to_owned(), "B".to_owned()][..]));
    for (row, why) in [
        (
            "p-1,1,1,2,500,,,,0,1,0",
            "gpu_milli 500 of each of 2 GPUs: a job takes whole GPUs, or a part of one",
        ),
        (
            "p-1,1,1,1,1500,,,,0,1,0",
            "gpu_milli 1500 of each of 1 GPUs: a job takes whole GPUs, or a part of one",
        ),
        ("p,1,1,1,500,,,,0,1,0", "name 'p' does not end in a number"),
        ("p-1,1,1,1,500,a b,,,0,1,0", "\"gpu:a b\" is no name of a resource"),
    ] {
        let error = openb(format!("{HEADER}\n{row}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 2: {why}")), "{error}");
    }
}

/// Reads a trace of the files shared with the repository. Returns `None` with a message if it is not there.
fn trace(name: &str) -> Option<Workload> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    let options = ReadOptions { gpus_per_node: Some(8), ..ReadOptions::default() };
    Some(workload::read(path, &options).unwrap())
}

/// The traces are read unchanged; their header lines name the format.
#[test]
fn the_traces_are_read() {
    let whole = |jobs: &Workload| jobs.jobs.iter().filter(|job| job.share.is_whole()).count();
    if let Some(philly) = trace("philly-2017.csv.gz") {
        assert_eq!((philly.jobs.len(), whole(&philly)), (111_549, 6_875));
        assert_eq!(philly.jobs.iter().map(|job| job.nodes).max(), Some(16));
    }
    if let Some(lingjun) = trace("lingjun-2023-jobs.csv.gz") {
        assert_eq!((lingjun.jobs.len(), whole(&lingjun)), (2_498, 1_933));
        assert_eq!(lingjun.jobs.iter().map(|job| job.nodes).max(), Some(93));
    }
    if let Some(openb) = trace("openb-2023-pods.csv.gz") {
        assert_eq!((openb.jobs.len(), openb.left_out["never started"]), (7_255, 897));
        assert!(openb.jobs.iter().any(|job| job.gpu_types.is_some()));
    }
}
