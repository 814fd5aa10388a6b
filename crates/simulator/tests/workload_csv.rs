//! Comma-separated workloads are read by column name, and written so that they read back exactly.

use std::sync::Arc;

use proptest::prelude::*;
use topolane_placement::{Attributes, Share};
use topolane_simulator::workload::{EarlierRun, Job, RecordedRun, Workload, csv, to_csv};

fn read(text: &str) -> Result<Vec<Job>, String> {
    csv(text.as_bytes()).map(|workload| workload.jobs).map_err(|error| error.to_string())
}

fn whole(id: u64, submit: f64, run: f64, walltime: Option<f64>, nodes: u32) -> Job {
    Job { id, submit, run, walltime, nodes, ..Job::default() }
}

#[test]
fn columns_have_names_and_any_order() {
    let text = "nodes, run ,id,walltime,submit,colour\n4,60.5,9,120,10,red\n2,1,8,,5,blue\n";
    let expected = [whole(8, 5.0, 1.0, None, 2), whole(9, 10.0, 60.5, Some(120.0), 4)];
    assert_eq!(read(text).unwrap(), expected);
}

#[test]
fn what_is_optional_may_be_there() {
    let text = "id,submit,run,nodes,cores,memory,start,hosts,earlier_runs\n\
                1,0,60,2,4,1024,7,\"n[1,3]\",-5:2:4 1:3.5:2\n2,0,60,2,4,,,,\n3,0,60,2,,,7,,\n";
    let jobs = read(text).unwrap();
    assert_eq!(jobs[0].share, Share::part(4, 1_024));
    let earlier = [
        EarlierRun { start: -5.0, run: 2.0, nodes: 4 },
        EarlierRun { start: 1.0, run: 3.5, nodes: 2 },
    ];
    let recorded = RecordedRun { start: 7.0, hosts: "n[1,3]".into(), earlier: earlier.into() };
    assert_eq!(jobs[0].recorded, Some(recorded));
    assert_eq!(jobs[1].share, Share::part(4, 0));
    assert_eq!((&jobs[2].share, &jobs[1].recorded), (&Share::Whole, &None));
}

#[test]
fn the_job_table_of_batsim_is_read() {
    let text = "job_id,workload_name,profile,submission_time,requested_number_of_resources,\
                requested_time,success,final_state,starting_time,execution_time,finish_time\n\
                3,w0,delay,10.0,4,-1.0,1,COMPLETED_SUCCESSFULLY,12.0,5.5,17.5\n";
    let mut expected = whole(3, 10.0, 5.5, None, 4);
    expected.recorded = Some(RecordedRun { start: 12.0, ..RecordedRun::default() });
    assert_eq!(read(text).unwrap(), [expected]);
}

#[test]
fn an_error_names_the_line_and_the_value() {
    let cases = [
        ("", "line 1: no column id or job_id"),
        ("id,submit,run,nodes\n", "a header line and no jobs"),
        ("id,id,submit,run,nodes\n", "line 1: two columns id or job_id"),
        ("id,submit,run,nodes\n1,2\n", "line 2: 2 fields, where the header has 4"),
        ("id,submit,run,nodes\n1,0,soon,1\n", "line 2: run 'soon' is not a number"),
        ("id,submit,run,nodes\n1,0,inf,1\n", "line 2: run 'inf' is not a number"),
        ("id,submit,run,nodes\n1,0,-1,1\n", "line 2: run -1 is negative"),
        ("id,submit,run,nodes\n1,1e16,1,1\n", "line 2: submit 10000000000000000 is too large"),
        (
            "id,submit,run,nodes\n1,0,1,0\n",
            "line 2: nodes '0' is not a whole number from 1 to 2147483648",
        ),
        ("id,submit,run,nodes\n1.5,0,1,1\n", "line 2: id '1.5' is not a number"),
        ("id,submit,run,nodes\n1,0,1,1\n1,0,1,1\n", "line 3: job 1 appears a second time"),
        (
            "id,submit,run,nodes,licenses\n1,0,1,1,matlab:0\n",
            "line 2: licenses 'matlab:0' is not like matlab:2,fluent",
        ),
        (
            "id,submit,run,nodes,requeue\n1,0,1,1,maybe\n",
            "line 2: requeue 'maybe' is neither yes nor no",
        ),
        ("id,submit,run,nodes,memory\n1,0,1,1,5\n", "line 2: memory without cores"),
        ("id,submit,run,nodes,start,hosts\n1,0,1,1,,n1\n", "line 2: hosts 'n1' without a start"),
        (
            "id,submit,run,nodes,start,earlier_runs\n1,0,1,1,,0:1:1\n",
            "line 2: earlier_runs '0:1:1' without a start",
        ),
        (
            "id,submit,run,nodes,start,earlier_runs\n1,0,1,1,9,0:1:1 60:4\n",
            "line 2: earlier_runs '60:4' is not like 600:60:4",
        ),
        (
            "id,submit,run,nodes,start,earlier_runs\n1,0,1,1,9,0:-1:1\n",
            "line 2: run time of earlier_runs -1 is negative",
        ),
        (
            "id,submit,run,nodes,start,earlier_runs\n1,0,1,1,9,0:1:0\n",
            "line 2: nodes of earlier_runs '0' is not a whole number from 1 to 2147483648",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(read(text), Err(message.into()));
    }
    let error = csv(&b"id,submit,run,nodes\n1,0,1,\xff\n"[..]);
    assert_eq!(error.unwrap_err().message, "not UTF-8 text");
}

fn any_owner() -> impl Strategy<Value = Option<Arc<Attributes>>> {
    let name = || prop_oneof![Just(""), Just("u1"), Just("a,b"), Just("the \"big\" one")];
    let names = (name(), name(), name(), name(), name());
    let license = (prop_oneof![Just("matlab"), Just("fluent@server")], 1..=10_000_u64);
    let licenses = prop::collection::vec(license, 0..3);
    let processors = prop::option::of(1..=10_000_u64);
    let queued = prop::option::of(-1e6..1e9);
    let owner = (names, -100..100_i64, processors, licenses, any::<bool>(), queued);
    owner.prop_map(|(names, nice, processors, licenses, no_requeue, queued)| {
        let (partition, user, account, qos, reservation) = names;
        let found = Attributes {
            partition: partition.into(),
            user: user.into(),
            account: account.into(),
            qos: qos.into(),
            reservation: reservation.into(),
            nice,
            processors,
            licenses: licenses.into_iter().map(|(name, asked)| (name.into(), asked)).collect(),
            no_requeue,
            queued,
        };
        (found != Attributes::default()).then(|| Arc::new(found))
    })
}

fn any_job() -> impl Strategy<Value = Job> {
    let share = prop_oneof![
        Just(Share::Whole),
        (1..=64_u32, any::<u64>()).prop_map(|(cores, memory)| Share::part(cores, memory)),
    ];
    let hosts = prop_oneof![Just(""), Just("n[1-3,5]"), Just("a\"b"), Just("x,y")];
    let earlier = (0.0..1e9, 0.0..1e6, 1..=10_000_u32).prop_map(|(start, run, nodes)| EarlierRun {
        start,
        run,
        nodes,
    });
    let recorded = (0.0..1e9, hosts, prop::collection::vec(earlier, 0..3)).prop_map(
        |(start, hosts, earlier)| RecordedRun {
            start,
            hosts: hosts.to_string(),
            earlier: earlier.into(),
        },
    );
    (
        0.0..1e9,
        0.0..1e6,
        prop::option::of(1.0..1e6),
        1..=10_000_u32,
        share,
        prop::option::of(recorded),
        any_owner(),
    )
        .prop_map(|(submit, run, walltime, nodes, share, recorded, attributes)| Job {
            id: 0,
            submit,
            run,
            walltime,
            nodes,
            share,
            // Readers take a start before the submission as the sign of a clock that was set back.
            recorded: recorded.map(|one| RecordedRun { start: submit + one.start, ..one }),
            attributes,
            ..Job::default()
        })
}

/// The reader adds details from the other columns of a row; they have no column of their own.
fn without_details(mut jobs: Vec<Job>) -> Vec<Job> {
    for job in &mut jobs {
        job.details = None;
    }
    jobs
}

proptest! {
    /// Any jobs read back to the last bit.
    #[test]
    fn what_is_written_reads_back_exactly(mut jobs in prop::collection::vec(any_job(), 1..20)) {
        jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
        for (job, id) in jobs.iter_mut().zip(1..) {
            job.id = id;
        }
        let text = to_csv(&Workload { jobs: jobs.clone(), ..Workload::default() });
        let again = text.map_err(|error| error.to_string()).and_then(|text| read(&text));
        prop_assert_eq!(again.map(without_details), Ok(jobs));
    }
}

/// If hosts or users in a log begin like a formula, they are not written into a file for spreadsheets.
#[test]
fn words_that_a_spreadsheet_would_compute_are_not_written() {
    for sign in ["=", "+", "-", "@"] {
        let log = format!("id,submit,run,nodes,start,hosts\n7,0,1,1,0,{sign}1+cmd\n");
        let jobs = read(&log).expect("a log");
        let error = to_csv(&Workload { jobs, ..Workload::default() }).expect_err("refused");
        assert!(error.to_string().contains("job 7 ran on"), "{error}");
        let log = format!("id,submit,run,nodes,user\n7,0,1,1,{sign}1+cmd\n");
        let jobs = read(&log).expect("a log");
        let error = to_csv(&Workload { jobs, ..Workload::default() }).expect_err("refused");
        assert!(error.to_string().contains("job 7 has the user"), "{error}");
    }
}
