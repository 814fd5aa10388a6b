//! The Standard Workload Format is read as its definition (version 2.2) says.

#![allow(clippy::unwrap_used)] // Helpers may fail.

use topolane_placement::Share;
use topolane_simulator::workload::{Job, ReadOptions, RecordedRun, Workload, swf, to_swf};

/// A record of 18 fields, with these: id, submit, wait, run, allocated, requested processors, requested time, status,
/// partition. The others are unknown.
fn record(fields: [&str; 9]) -> String {
    let [id, submit, wait, run, allocated, requested, walltime, status, partition] = fields;
    format!(
        "{id} {submit} {wait} {run} {allocated} -1 -1 {requested} {walltime} -1 {status} -1 -1 -1 \
         -1 {partition} -1 -1\n"
    )
}

fn read(text: &str) -> Workload {
    swf(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn error(text: &str) -> String {
    swf(text.as_bytes(), &ReadOptions::default()).unwrap_err().to_string()
}

#[test]
fn every_field_used_has_the_meaning_the_format_gives_it() {
    let text = record(["7", "100", "20", "3600", "8", "16", "7200", "1", "-1"]);
    let job = Job {
        id: 7,
        submit: 100.0,
        run: 3_600.0,
        walltime: Some(7_200.0),
        nodes: 8,
        share: Share::Whole,
        recorded: Some(RecordedRun { start: 120.0, ..RecordedRun::default() }),
        ..Job::default()
    };
    assert_eq!(read(&text).jobs, [job]);
}

#[test]
fn what_is_unknown_is_none() {
    let text = record(["7", "100", "-1", "3600", "8", "-1", "-1", "1", "-1"]);
    let job = &read(&text).jobs[0];
    assert_eq!((job.walltime, &job.recorded), (None, &None));
}

#[test]
fn the_processors_requested_stand_in_for_those_allocated() {
    let text = record(["7", "0", "-1", "1", "-1", "16", "-1", "1", "-1"]);
    assert_eq!(read(&text).jobs[0].nodes, 16);
}

#[test]
fn a_job_that_never_ran_is_skipped_but_one_of_no_length_stays() {
    let text = [
        record(["1", "0", "-1", "-1", "8", "8", "-1", "5", "-1"]),
        record(["2", "0", "-1", "60", "-1", "-1", "-1", "5", "-1"]),
        record(["3", "0", "-1", "60", "0", "0", "-1", "5", "-1"]),
        record(["4", "0", "-1", "0", "8", "8", "-1", "5", "-1"]),
    ];
    let workload = read(&text.concat());
    assert_eq!(workload.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [4]);
    assert_eq!(workload.left_out["never ran"], 3);
}

#[test]
fn a_job_in_parts_counts_once() {
    let parts =
        ["1", "2", "2", "3"].map(|s| record(["5", "9", "-1", "60", "8", "8", "-1", s, "1"]));
    let workload = read(&parts.concat());
    assert_eq!(workload.jobs.len(), 1);
    assert_eq!(workload.left_out.values().sum::<u64>(), 3);
}

#[test]
fn nodes_are_processors_over_cores_rounded_up() {
    let jobs =
        ["1", "8", "9"].map(|p| record([p, "0", "-1", "60", p, p, "-1", "1", "-1"])).concat();
    let nodes = |header: &str, cores_per_node| {
        let options = ReadOptions { cores_per_node, ..ReadOptions::default() };
        let workload = swf(format!("{header}{jobs}").as_bytes(), &options).unwrap();
        workload.jobs.iter().map(|job| job.nodes).collect::<Vec<_>>()
    };
    assert_eq!(nodes("; MaxNodes: 10\n; MaxProcs: 80\n", None), [1, 1, 2]);
    assert_eq!(nodes("; MaxNodes: 10\n; MaxProcs: 80\n", Some(4)), [1, 2, 3]);
    assert_eq!(nodes("; MaxNodes: 10\n; MaxProcs: 85\n", None), [1, 8, 9], "does not divide");
    assert_eq!(nodes("; MaxProcs: 80\n", None), [1, 8, 9], "nodes unknown");
}

#[test]
fn the_header_dates_the_log() {
    let job = record(["1", "0", "-1", "60", "8", "8", "-1", "1", "-1"]);
    let at = |header: &str| {
        let workload = read(&format!("{header}{job}"));
        (workload.epoch, workload.utc_offset)
    };
    assert_eq!(at("; UnixStartTime: 1163199901\n; TimeZone: 3600\n"), (1_163_199_901.0, 3_600.0));
    // The local time of the start is 8 hours behind UTC; `TimeZone` is a field that the format calls buggy.
    let start = "; StartTime: Fri Nov 10 15:05:01 PST 2006\n";
    let header = format!("; UnixStartTime: 1163199901\n; TimeZone: 3600\n{start}");
    assert_eq!(at(&header), (1_163_199_901.0, -28_800.0));
    assert_eq!(at("; Note: nothing\n;\n"), (0.0, 0.0));
}

#[test]
fn a_partition_is_chosen_by_number_or_by_its_name_in_the_header() {
    let jobs = ["1", "2", "1"].iter().zip(1..);
    let jobs: String = jobs
        .map(|(p, id)| record([&id.to_string(), "0", "-1", "60", "8", "8", "-1", "1", p]))
        .collect();
    let text = format!("; Partition:  1  pbatch \n; Partition: 2 pdebug\n{jobs}");
    let ids = |name: &str| {
        let options = ReadOptions { partition: Some(name.into()), ..ReadOptions::default() };
        swf(text.as_bytes(), &options)
            .map(|workload| workload.jobs.iter().map(|job| job.id).collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    };
    assert_eq!(ids("pbatch"), Ok(vec![1, 3]));
    assert_eq!(ids("2"), Ok(vec![2]));
    let wrong = "no partition 'gpu': the log's header names pbatch, pdebug";
    assert_eq!(ids("gpu"), Err(wrong.into()));
}

#[test]
fn jobs_come_by_submission_and_then_by_position() {
    let rows = [("1", "50"), ("2", "10"), ("3", "50"), ("4", "10")];
    let text = rows.map(|(id, at)| record([id, at, "-1", "60", "8", "8", "-1", "1", "-1"]));
    let ids: Vec<u64> = read(&text.concat()).jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids, [2, 4, 1, 3]);
}

#[test]
fn fractions_tabs_extra_fields_and_dos_line_ends_are_read() {
    let text = "; Version: 2\r\n\r\n1\t10.5 -1\t 6e1 8.0 -1 -1 8 120 -1 1 1 1 1 1 1 -1 -1 77\r\n";
    let job = &read(text).jobs[0];
    assert_eq!((job.submit, job.run, job.nodes, job.walltime), (10.5, 60.0, 8, Some(120.0)));
}

#[test]
fn an_error_names_the_line_and_the_value() {
    let good = record(["1", "0", "-1", "60", "8", "8", "-1", "1", "-1"]);
    let bad = |fields: [&str; 9]| error(&format!("; Version: 2.2\n{good}{}", record(fields)));
    let cases = [
        (
            bad(["x7", "0", "-1", "60", "8", "8", "-1", "1", "-1"]),
            "line 3: field 1 is 'x7', not a number",
        ),
        (
            bad(["2", "0", "-1", "nan", "8", "8", "-1", "1", "-1"]),
            "line 3: field 4 is 'nan', not a number",
        ),
        (
            bad(["2", "0", "-1", "60", "--8", "8", "-1", "1", "-1"]),
            "line 3: field 5 is '--8', not a number",
        ),
        (
            bad(["2", "9007199254740993000", "-1", "6", "8", "8", "-1", "1", "-1"]),
            "line 3: field 2 is '9007199254740993000', too large",
        ),
        (
            bad(["2", "1000000000000001", "-1", "6", "8", "8", "-1", "1", "-1"]),
            "line 3: submit time 1000000000000001 is too large",
        ),
        (
            bad(["2", "-5", "-1", "60", "8", "8", "-1", "1", "-1"]),
            "line 3: submit time -5 is negative",
        ),
        (
            bad(["2", "0", "-1", "60", "2147483649", "8", "-1", "1", "-1"]),
            "line 3: 2147483649 processors are too many",
        ),
        (
            bad(["1", "0", "-1", "60", "8", "8", "-1", "1", "-1"]),
            "line 3: job 1 appears a second time",
        ),
        (
            bad(["-1", "0", "-1", "60", "8", "8", "-1", "1", "-1"]),
            "line 3: job number -1 is not a whole number from 0",
        ),
        (error("1 2 3\n"), "line 1: 3 fields, where a record has 18"),
        (error(""), "no job records: not a log in the Standard Workload Format"),
        (error("; Version: 2.2\n"), "no job records: not a log in the Standard Workload Format"),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

#[test]
fn a_log_written_is_valid_and_reads_back_as_the_same_jobs() {
    let workload = Workload {
        name: "a\nb".into(),
        epoch: 1_163_199_901.0,
        utc_offset: -28_800.0,
        cores_per_node: 8,
        jobs: read(
            &[
                record(["7", "100", "20", "3600", "8", "16", "7200", "1", "-1"]),
                record(["3", "200", "-1", "0", "9", "16", "-1", "1", "-1"]),
            ]
            .concat(),
        )
        .jobs,
        left_out: [("never ran".to_string(), 4)].into(),
        ..Workload::default()
    };
    let text = to_swf(&workload).unwrap();
    assert!(text.starts_with("; Version: 2.2\n; Computer: a b\n; MaxJobs: 2\n"));
    for line in text.lines().filter(|line| !line.starts_with(';')) {
        assert_eq!(line.split(' ').filter(|field| field.parse::<i64>().is_ok()).count(), 18);
    }
    let expected = Workload { name: String::new(), left_out: [].into(), ..workload.clone() };
    assert_eq!(read(&text), expected);
}

#[test]
fn a_job_on_shared_nodes_is_refused_not_widened() {
    let mut workload = read(&record(["7", "100", "20", "3600", "8", "16", "7200", "1", "-1"]));
    workload.jobs[0].share = Share::part(2, 0);
    assert!(to_swf(&workload).unwrap_err().message.starts_with("job 7 shares its nodes"));
}
