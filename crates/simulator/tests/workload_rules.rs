//! What every reader of logs does with a value that cannot be right: it corrects it by a rule or returns an error.

#![allow(clippy::float_cmp, clippy::unwrap_used)] // Values are exact; helpers may fail.

use std::path::PathBuf;

use topolane_simulator::workload::{ReadOptions, Workload, csv, openb, read, sacct, swf};

const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
    deletion_time,scheduled_time\n";

fn swf_of(text: &str) -> Workload {
    swf(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn record(id: u32, processors: u32) -> String {
    format!("{id} 0 0 100 {processors} -1 -1 {processors} 200 -1 1 1 1 1 1 1 -1 -1\n")
}

fn message(text: &str) -> String {
    let folder = std::env::temp_dir().join(format!("topolane-rules-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path: PathBuf = folder.join("log.txt");
    std::fs::write(&path, text).unwrap();
    let error = read(&path, &ReadOptions::default()).unwrap_err().message;
    std::fs::remove_dir_all(&folder).unwrap();
    error
}

/// In every format, a job that started before its submission counts as submitted when it started. The log counts such
/// jobs.
#[test]
fn a_clock_that_went_back_moves_the_submission() {
    let rows = "JobID|Submit|Start|ElapsedRaw|NNodes\n1|500|400|60|1\n2|100|100|60|1\n";
    let pods = format!(
        "{PODS}p-1,1000,10,0,0,,LS,Running,50,90,40\np-2,1000,10,0,0,,LS,Running,0,90,40\n"
    );
    let logs = [
        (sacct(rows.as_bytes(), &ReadOptions::default()).unwrap(), 300.0, 300.0),
        (csv(&b"id,submit,run,nodes,start\n1,50,1,1,40\n2,0,1,1,9\n"[..]).unwrap(), 40.0, 40.0),
        (openb(pods.as_bytes()).unwrap(), 40.0, 40.0),
    ];
    for (log, submit, start) in logs {
        let job = log.jobs.iter().find(|job| job.id == 1).unwrap();
        assert_eq!((job.submit, job.recorded.as_ref().unwrap().start), (submit, start));
        assert_eq!(log.changed.values().sum::<u64>(), 1, "{:?}", log.changed);
    }
}

/// Batsim writes -1 for a job that did not start; another negative start is an error.
#[test]
fn start_minus_one_is_no_start() {
    for none in ["-1", "-1.0", ""] {
        let text = format!("id,submit,run,nodes,start\n1,5,10,2,{none}\n");
        assert!(csv(text.as_bytes()).unwrap().jobs[0].recorded.is_none(), "{none}");
    }
    let error = csv(&b"id,submit,run,nodes,start\n1,5,10,2,-7\n"[..]).unwrap_err();
    assert_eq!(error.to_string(), "line 2: start -7 is negative");
}

/// A number in a header may have a comma before every three digits.
#[test]
fn numbers_with_commas_are_numbers() {
    for (procs, nodes) in [("1,024", "64"), ("1024", "64"), ("16,384", "1,024")] {
        let log = swf_of(&format!("; MaxProcs: {procs}\n; MaxNodes: {nodes}\n{}", record(1, 16)));
        assert_eq!((log.jobs[0].nodes, log.cores_per_node), (1, 16), "{procs} {nodes}");
        assert!(log.assumed.is_empty());
    }
}

/// If the header does not give the cores of a node, the log says what is assumed and why.
#[test]
fn cores_that_no_header_gives_are_reported_as_assumed() {
    for (header, why) in [
        ("", "does not give both"),
        ("; MaxProcs: 64\n", "does not give both"),
        ("; MaxProcs: 10,24\n; MaxNodes: 64\n", "MaxProcs '10,24' is not a number"),
        ("; MaxProcs: many\n; MaxNodes: 64\n", "MaxProcs 'many' is not a number"),
        ("; MaxProcs: 65\n; MaxNodes: 64\n", "MaxProcs 65 is not a multiple of MaxNodes 64"),
    ] {
        let log = swf_of(&format!("{header}{}", record(1, 16)));
        assert_eq!(log.jobs[0].nodes, 16);
        assert!(log.assumed[0].contains(why), "{:?}", log.assumed);
        let options = ReadOptions { cores_per_node: Some(16), ..ReadOptions::default() };
        let text = format!("{header}{}", record(1, 16));
        assert!(swf(text.as_bytes(), &options).unwrap().assumed.is_empty(), "it is given");
    }
}

/// A part of a GPU and the number of GPUs must fit each other.
#[test]
fn no_part_of_a_gpu_is_an_error() {
    for (gpus, milli, says) in [
        (1, 0, "gpu_milli 0 of num_gpu 1"),
        (4, 0, "gpu_milli 0 of num_gpu 4"),
        (0, 500, "gpu_milli 500, but num_gpu 0"),
    ] {
        let text = format!("{PODS}p-1,1000,10,{gpus},{milli},,LS,Running,0,10,0\n");
        let error = openb(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && error.contains(says), "{error}");
    }
}

/// Control characters, and marks that turn the direction of text, never get past a reader.
#[test]
fn names_are_printable() {
    let bad = "a\u{202e}b\0c\u{1b}[2Jd\u{61c}e";
    let text = format!(
        "id,submit,run,nodes,start,hosts,user,account,partition,qos,reservation,licenses\n\
         1,0,1,1,0,{bad},{bad},{bad},{bad},{bad},{bad},{bad}\n"
    );
    let rows = format!("JobID|Submit|Start|ElapsedRaw|NNodes|NodeList\n1|1|1|1|1|{bad}\n");
    for log in
        [csv(text.as_bytes()).unwrap(), sacct(rows.as_bytes(), &ReadOptions::default()).unwrap()]
    {
        let shown = log.to_csv();
        assert!(shown.contains("\\u{202e}"), "{shown}");
        let mut letters = shown.chars().filter(|&letter| letter != '\n');
        assert!(letters.all(topolane_fabric::is_printable), "{shown:?}");
    }
}

trait ToCsv {
    fn to_csv(&self) -> String;
}

impl ToCsv for Workload {
    fn to_csv(&self) -> String {
        topolane_simulator::workload::to_csv(self).unwrap()
    }
}

/// A file of another kind gets an error that names the kind and what to do about it.
#[test]
fn other_files_are_named() {
    for (text, says) in [
        ("605547|605547|a|2017-01-04T16:57:11|16|COMPLETED|\n", "--noheader"),
        ("1,0,10,4\n2,5,10,4\n", "no header line"),
        ("04/01/2017 00:00:11;E;123.server;user=u start=1491000100\n", "PBS"),
        ("{\"nb_res\": 4, \"jobs\": [], \"profiles\": {}}", "Batsim"),
        ("{\"meta\": {}, \"jobs\": []}", "sacct --json"),
        ("JobID;Submit;Start;End;NNodes\n1;1;1;2;1\n", "semicolons"),
        ("JobID\tSubmit\tStart\tEnd\tNNodes\n1\t1\t1\t2\t1\n", "tabs"),
        ("id;submit;run;nodes\n1;0;1;1\n", "semicolons"),
        ("JobID    JobName  Partition\n-------- -------- ---------\n", "sacct -P"),
        ("<html><body>404</body></html>\n", "HTML"),
    ] {
        let error = message(text);
        assert!(error.contains(says), "{text}: {error}");
    }
}
