//! The output of `sacct -P` is read as Slurm means it.

#![allow(clippy::float_cmp, clippy::unwrap_used)] // Values are exact; helpers may fail.

use std::sync::Arc;

use topolane_placement::Share;
use topolane_simulator::workload::{Details, Job, ReadOptions, RecordedRun, Workload, sacct};

const HEADER: &str = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NodeList\n";

fn read_with(text: &str, options: &ReadOptions) -> Result<Workload, String> {
    sacct(text.as_bytes(), options).map_err(|error| error.to_string())
}

fn read(text: &str) -> Workload {
    read_with(text, &ReadOptions::default()).unwrap()
}

/// The job of a log that has only this row under this header.
fn job(header: &str, row: &str) -> Job {
    let mut jobs = read(&format!("{header}\n{row}\n")).jobs;
    assert_eq!(jobs.len(), 1, "{row}");
    jobs.remove(0)
}

#[test]
fn an_export_of_a_real_cluster() {
    let text = "\
JobIDRaw|JobName|User|Account|Partition|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NCPUS|ReqCPUS|State|ExitCode|Priority|NodeList|QOS|Reason
1552|app.milc|root|root|pbatch|2026-11-21T19:12:48|2026-11-21T19:12:48|2026-11-21T19:12:50|2026-11-21T19:13:02|12|10|4|64|4|COMPLETED|0:0|4294901757|cab[7-10]|Unknown|None
1552.batch|batch||root||2026-11-21T19:12:50|2026-11-21T19:12:50|2026-11-21T19:12:50|2026-11-21T19:13:02|12||1|16|16|COMPLETED|0:0||cab7||
1552.0|milc||root||2026-11-21T19:12:50|2026-11-21T19:12:50|2026-11-21T19:12:50|2026-11-21T19:13:02|12||4|64|64|COMPLETED|0:0||cab[7-10]||
1605|app.milc|root|root|pbatch|2026-11-21T19:14:06|2026-11-21T19:14:07|2026-11-21T19:14:07|Unknown|9|10|4|64|4|RUNNING|0:0|4294901752|cab[11-14]|normal|JobHeldUser
1606|app.milc|root|root|pbatch|2026-11-21T19:14:08|Unknown|Unknown|Unknown|0|10|4|0|4|PENDING|0:0|0|None assigned|normal|JobHeldUser
";
    let workload = read(text);
    let expected = Job {
        id: 1552,
        submit: 0.0,
        run: 12.0,
        walltime: Some(600.0),
        nodes: 4,
        share: Share::Whole,
        recorded: Some(RecordedRun {
            start: 2.0,
            hosts: "cab[7-10]".into(),
            ..RecordedRun::default()
        }),
        details: Some(Arc::new(Details { partition: "pbatch".into(), ..Details::default() })),
        ..Job::default()
    };
    assert_eq!(workload.jobs, [expected]);
    // 2026-11-21T19:12:48 as UTC.
    assert_eq!((workload.epoch, workload.utc_offset), (1_795_288_368.0, 0.0));
    let skipped: Vec<_> = workload.left_out.iter().map(|(r, n)| (r.as_str(), *n)).collect();
    assert_eq!(skipped, [("never started", 1), ("step of a job", 2), ("still running", 1)]);
}

#[test]
fn columns_may_stand_in_any_order_and_case() {
    let job = job(
        "NODELIST|nnodes|end|start|submit",
        "n[1-2]|2|2026-01-01T00:01:00|2026-01-01T00:00:30|2026-01-01T00:00:00",
    );
    assert_eq!((job.id, job.run, job.nodes, job.walltime), (1, 30.0, 2, None));
}

#[test]
fn civil_times_follow_the_calendar() {
    let epoch =
        |time: &str| read(&format!("Submit|Start|ElapsedRaw|NNodes\n{time}|{time}|1|1\n")).epoch;
    assert_eq!(epoch("1970-01-01T00:00:00"), 0.0);
    assert_eq!(epoch("2000-02-29T12:00:00"), 951_825_600.0);
    assert_eq!(epoch("2000-03-01T00:00:00"), 951_868_800.0);
    assert_eq!(epoch("2014-08-01T00:00:00"), 1_406_851_200.0);
    assert_eq!(epoch("1406851200"), 1_406_851_200.0, "SLURM_TIME_FORMAT=%s");
    for wrong in [
        "2023-02-29T00:00:00",
        "2023-13-01T00:00:00",
        "2023-01-01",
        "2023-01-01T24:00:00",
        "99999999999999999-01-01T00:00:00",
    ] {
        let text = format!("Submit|Start|ElapsedRaw|NNodes\n{wrong}|{wrong}|1|1\n");
        let error = read_with(&text, &ReadOptions::default()).unwrap_err();
        assert_eq!(
            error,
            format!("line 2: Start '{wrong}' is not a time like 2026-11-21T19:12:48")
        );
    }
}

#[test]
fn the_run_time_is_what_slurm_counted_not_the_clock_of_the_wall() {
    // In the night when the clocks go back, End - Start is an hour short.
    let row = "1|2026-11-01T00:30:00|2026-11-01T00:30:00|2026-11-01T01:30:00|7200|10|1|n1";
    assert_eq!(job(HEADER.trim(), row).run, 7_200.0);
    let elapsed =
        |text: &str| job("Submit|Start|Elapsed|NNodes", &format!("1000|1000|{text}|1")).run;
    assert_eq!(elapsed("00:02"), 2.0);
    assert_eq!(elapsed("01:02:03"), 3_723.0);
    assert_eq!(elapsed("1-02:03:04"), 93_784.0);
}

#[test]
fn a_job_that_ends_before_it_starts_is_skipped() {
    let workload = read("Submit|Start|End|NNodes\n10|100|40|1\n10|100|140|1\n");
    assert_eq!(workload.left_out["ended before it started"], 1);
    assert_eq!(workload.jobs.len(), 1);
}

#[test]
fn limits_are_minutes_or_clock_times_or_none() {
    let raw =
        |text: &str| job("Submit|Start|ElapsedRaw|NNodes|TimelimitRaw", &format!("1|1|1|1|{text}"));
    let clock =
        |text: &str| job("Submit|Start|ElapsedRaw|NNodes|Timelimit", &format!("1|1|1|1|{text}"));
    assert_eq!(raw("90").walltime, Some(5_400.0));
    assert_eq!(clock("01:30:00").walltime, Some(5_400.0));
    assert_eq!(clock("2-00:00:00").walltime, Some(172_800.0));
    for none in ["UNLIMITED", "Partition_Limit", "INVALID", ""] {
        assert_eq!((raw(none).walltime, clock(none).walltime), (None, None));
    }
}

/// Several exports one after the other, each with its header, are read as one log.
#[test]
fn a_repeated_header_is_passed_over() {
    let header = "JobID|Submit|Start|ElapsedRaw|NNodes";
    let text = format!("{header}\n1|1|1|1|1\n{header}\n2|2|2|1|1\n");
    let workload = sacct(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(workload.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn array_tasks_and_components_have_ids_of_their_own() {
    let id =
        |text: &str| job("JobID|Submit|Start|ElapsedRaw|NNodes", &format!("{text}|1|1|1|1")).id;
    assert_eq!(id("12"), 12);
    assert_eq!(id("12_3"), 40_000_000_012);
    // Slurm numbers the components of a heterogeneous job one after another.
    assert_eq!(id("12+1"), 13);
    // Tasks that are still pending have no number, and are skipped.
    let text = "JobID|Submit|Start|ElapsedRaw|NNodes\n12_[3-9]|1|Unknown|0|1\n12_2|1|1|1|1\n";
    assert_eq!(read(text).left_out["never started"], 1);
}

#[test]
fn shared_nodes_give_each_node_an_even_part() {
    let options = ReadOptions { shared: true, ..ReadOptions::default() };
    let share = |cores: &str, memory: &str| {
        let text =
            format!("Submit|Start|ElapsedRaw|NNodes|NCPUS|ReqMem\n1|1|1|2|{cores}|{memory}\n");
        read_with(&text, &options).map(|workload| workload.jobs[0].share.clone())
    };
    let part = |cores, memory| Ok(Share::part(cores, memory));
    assert_eq!(share("7", ""), part(4, 0));
    assert_eq!(share("8", "4G"), part(4, 2 << 30), "of the whole job");
    assert_eq!(share("8", "4Gn"), part(4, 4 << 30), "of each node");
    assert_eq!(share("8", "512Mc"), part(4, 2 << 30), "of each core");
    assert_eq!(share("8", "1.5G"), part(4, 3 << 28));
    assert!(share("8", "much").is_err());
    assert!(share("", "4G").is_err());
    let error = read_with("Submit|Start|ElapsedRaw|NNodes\n", &options).unwrap_err();
    assert_eq!(error, "line 1: no column NCPUS, which shared nodes need");
}

#[test]
fn one_partition_may_be_chosen() {
    let text = "Partition|Submit|Start|ElapsedRaw|NNodes\na|5|5|1|1\nb|7|7|1|1\na|9|9|1|1\n";
    let options = ReadOptions { partition: Some("b".into()), ..ReadOptions::default() };
    let workload = read_with(text, &options).unwrap();
    assert_eq!((workload.jobs.len(), workload.epoch), (1, 7.0));
    assert_eq!(workload.left_out["in another partition"], 2);
}

#[test]
fn an_error_names_the_line_and_the_value() {
    let error = |text: &str| read_with(text, &ReadOptions::default()).unwrap_err();
    assert_eq!(error(""), "empty, where a header line of sacct -P is expected");
    assert_eq!(error(HEADER), "a header line and no rows");
    assert_eq!(error("Submit|Start|NNodes\n"), "line 1: no column End, ElapsedRaw or Elapsed");
    assert_eq!(error("Start|End|NNodes\n"), "line 1: no column Submit");
    assert_eq!(error("Submit|Start|End|NNodes\n1|2\n"), "line 2: 2 fields, where the header has 4");
    let rows = "JobID|Submit|Start|End|NNodes\n5|1|1|2|1\n5|1|1|2|1\n";
    assert_eq!(error(rows), "line 3: job 5 appears a second time");
    let rows = "JobID|Submit|Start|End|NNodes\nabc|1|1|2|1\n";
    assert_eq!(error(rows), "line 2: 'abc' is not a job number");
    let rows = "JobID|Submit|Start|End|NNodes\n1|1|1|2|many\n";
    assert_eq!(error(rows), "line 2: NNodes 'many' is not a whole number from 1 to 2147483648");
}
