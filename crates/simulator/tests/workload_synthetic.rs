//! The synthetic months match what is published about Cab, and the mixes match their names.

#![allow(clippy::float_cmp, clippy::unwrap_used)] // Values are exact; helpers may fail.

use topolane_simulator::workload::{
    Exponential, Job, Month, PRESETS, Workload, exponential, generate, gpu_month, month, preset,
};

const SEEDS: std::ops::Range<u64> = 0..3;

fn months() -> impl Iterator<Item = (&'static str, Workload)> {
    ["cab-aug", "cab-sep", "cab-nov"]
        .into_iter()
        .flat_map(|name| SEEDS.map(move |seed| (name, preset(name, seed).unwrap())))
}

fn share(workload: &Workload, is: impl Fn(&Job) -> bool) -> f64 {
    workload.jobs.iter().filter(|job| is(job)).count() as f64 / workload.jobs.len() as f64
}

#[test]
fn loads_and_spans_are_met() {
    for (name, workload) in months() {
        let (load, days) = match name {
            "cab-aug" => (0.86, 31.0),
            "cab-sep" => (2.64, 15.0),
            _ => (0.83, 30.0),
        };
        assert!((workload.load(1_296) / load - 1.0).abs() < 1e-5, "{name}");
        assert_eq!((workload.span(), workload.jobs[0].submit), (days * 86_400.0, 0.0));
    }
}

#[test]
fn no_job_has_more_than_256_nodes_or_24_hours_and_87_per_cent_under_18_nodes() {
    for (name, workload) in months() {
        for job in &workload.jobs {
            assert!((1..=256).contains(&job.nodes));
            assert!((1.0..=86_400.0).contains(&job.run));
            assert!(job.walltime.is_some_and(|walltime| (job.run..=86_400.0).contains(&walltime)));
            assert!(job.run.fract() == 0.0 && job.submit.fract() == 0.0, "whole seconds");
        }
        assert_eq!(workload.jobs.iter().map(|job| job.nodes).max(), Some(256));
        assert!((share(&workload, |job| job.nodes < 18) - 0.87).abs() < 0.01, "{name}");
    }
}

#[test]
fn powers_of_two_and_usual_walltimes_are_favoured() {
    for (name, workload) in months() {
        let parallel = share(&workload, |job| job.nodes > 1);
        let powers = share(&workload, |job| job.nodes > 1 && job.nodes.is_power_of_two());
        assert!(powers / parallel > 0.77, "{name}");
        let usual = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 18.0, 24.0];
        let usual = share(&workload, |job| {
            job.walltime.is_some_and(|walltime| usual.contains(&(walltime / 3_600.0)))
        });
        assert!(usual > 0.6, "{name}: {usual}");
    }
}

#[test]
fn submissions_follow_the_day_and_the_week() {
    let mut by_hour = [0_u32; 24];
    let mut by_weekday = [0_u32; 7];
    for seed in SEEDS {
        let workload = preset("cab-aug", seed).unwrap();
        for job in &workload.jobs {
            let local = workload.epoch + job.submit + workload.utc_offset;
            by_hour[(local / 3_600.0) as usize % 24] += 1;
            // 1970-01-01 was a Thursday.
            by_weekday[((local / 86_400.0) as usize + 3) % 7] += 1;
        }
    }
    let busiest = (0..24).max_by_key(|&hour| by_hour[hour]).unwrap();
    assert!((12..18).contains(&busiest), "{by_hour:?}");
    assert!(by_hour[15] > by_hour[4] + by_hour[4] / 5, "{by_hour:?}");
    // August 2014 had five Saturdays and Sundays, and four Wednesdays.
    assert!(by_weekday[5] + by_weekday[6] < 2 * by_weekday[2] * 5 / 4, "{by_weekday:?}");
}

#[test]
fn a_seed_gives_the_same_month_and_another_gives_another() {
    for (name, _) in PRESETS {
        let first = preset(name, 1).unwrap();
        assert_eq!(first, preset(name, 1).unwrap(), "{name}");
        assert_ne!(first.jobs, preset(name, 2).unwrap().jobs, "{name}");
        assert_eq!(first.name, name);
        assert!(first.jobs.iter().zip(1..).all(|(job, id)| job.id == id));
        assert!(first.jobs.is_sorted_by(|a, b| a.submit <= b.submit));
    }
}

#[test]
fn a_suffix_multiplies_the_nodes_and_nothing_else() {
    let once = preset("cab-aug", 3).unwrap();
    let twice = preset("cab-aug-2x", 3).unwrap();
    for (a, b) in once.jobs.iter().zip(&twice.jobs) {
        assert_eq!((b.nodes, b.run, b.submit), (2 * a.nodes, a.run, a.submit));
    }
    // On a machine of twice the size the load is the same.
    assert!((twice.load(2_592) / once.load(1_296) - 1.0).abs() < 1e-12);
    assert!((preset("cab-aug-3x", 3).unwrap().load(2_592) - 1.29).abs() < 1e-4);
}

#[test]
fn a_month_may_be_changed_before_it_is_made() {
    let mut week = month("cab-aug").unwrap();
    (week.days, week.jobs, week.load) = (7, 4_000, 0.5);
    let workload = generate(&week, 1);
    assert_eq!((workload.jobs.len(), workload.span()), (4_000, 7.0 * 86_400.0));
    assert!((workload.load(1_296) - 0.5).abs() < 1e-4);
}

#[test]
fn a_month_of_nothing_is_made_without_complaint() {
    let empty = month("cab-aug").map(|month| Month { days: 0, jobs: 3, widest: 0, ..month });
    assert_eq!(generate(&empty.unwrap(), 1).span(), 0.0);
    let none = month("cab-aug").map(|month| Month { jobs: 0, narrow_below: 0, ..month });
    assert!(generate(&none.unwrap(), 1).jobs.is_empty());
}

#[test]
fn a_mix_is_exponential_in_size_and_uniform_in_time() {
    let workload = preset("exp-16", 1).unwrap();
    assert_eq!(workload.jobs.len(), 5_000);
    assert_eq!(workload.span(), 0.0, "all at once");
    let mean = |of: fn(&Job) -> f64| workload.jobs.iter().map(of).sum::<f64>() / 5_000.0;
    // Rounding widths up adds half a node.
    assert!((mean(|job| f64::from(job.nodes)) - 16.5).abs() < 0.8);
    assert!((mean(|job| job.run) - 1_510.0).abs() < 40.0);
    assert!(workload.jobs.iter().all(|job| (20.0..=3_000.0).contains(&job.run)));
    // The distribution is memoryless: 1/e of the jobs are wider than the mean.
    assert!((share(&workload, |job| job.nodes > 16) - (-1.0_f64).exp()).abs() < 0.02);
}

#[test]
fn a_mix_may_come_at_a_load() {
    let mix = Exponential { load: Some((1_024, 0.9)), ..Exponential::default() };
    let workload = exponential(&mix, 1).unwrap();
    assert!((workload.load(1_024) - 0.9).abs() < 1e-9);
    assert!(workload.jobs.is_sorted_by(|a, b| a.submit <= b.submit));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let load = Exponential { load: Some((1_024, wrong)), ..Exponential::default() };
        let mean = Exponential { mean_nodes: wrong, ..Exponential::default() };
        assert!(exponential(&load, 1).is_err() && exponential(&mean, 1).is_err(), "{wrong}");
    }
}

#[test]
fn an_unknown_name_is_an_error_that_lists_the_names() {
    for name in ["", "cab", "cab-dec", "cab-aug-0x", "cab-aug-x", "exp-", "exp-0", "exp-nan", "-2x"]
    {
        assert!(preset(name, 1).is_err(), "{name}");
    }
    let error = preset("cab-dec", 1).unwrap_err().to_string();
    assert!(error.contains("cab-aug, cab-sep, cab-nov, exp-16"), "{error}");
}

/// What a job of the month takes of each node, by the name of a resource.
fn part(workload: &Workload, job: &Job, name: &str) -> Option<u64> {
    match &job.share {
        topolane_placement::Share::Whole => None,
        topolane_placement::Share::Part(amounts) => {
            workload.resources.index(name).map(|index| amounts.get(index))
        }
    }
}

#[test]
fn the_gpu_month_offers_its_load_and_small_jobs_do_their_part_of_it() {
    for seed in SEEDS {
        let month = gpu_month(seed);
        let work = |job: &Job| {
            let gpus = part(&month, job, "gpu").unwrap_or(u64::from(job.nodes) * 4);
            gpus as f64 * job.run
        };
        let all: f64 = month.jobs.iter().map(work).sum();
        let small: f64 = month.jobs.iter().filter(|job| job.nodes == 1).map(work).sum();
        let offered = all / (5_040.0 * 4.0 * 30.0 * 86_400.0);
        assert!((offered / 0.98 - 1.0).abs() < 0.01, "{offered}");
        assert!((small / all / 0.05 - 1.0).abs() < 0.02, "{}", small / all);
        assert_eq!(month, gpu_month(seed));
    }
}

#[test]
fn jobs_of_the_gpu_month_take_parts_of_a_node_or_whole_nodes_and_run_up_to_a_week() {
    let month = gpu_month(0);
    for job in &month.jobs {
        assert!((300.0..=604_800.0).contains(&job.run) && job.submit < 30.0 * 86_400.0);
        assert!(job.walltime.is_some_and(|walltime| (job.run..=604_800.0).contains(&walltime)));
        match part(&month, job, "gpu") {
            Some(gpus) => {
                assert!((1..=3).contains(&gpus) && job.nodes == 1);
                assert!(part(&month, job, "cores").is_some_and(|cores| (9..=144).contains(&cores)));
            }
            None => assert!((1..=186).contains(&job.nodes)),
        }
        match job.segment {
            Some(segment) => assert!(segment == 16 && job.nodes >= 16),
            None => assert!(job.nodes < 16),
        }
    }
    let median = |gpus: u64| {
        let mut runs: Vec<f64> = month
            .jobs
            .iter()
            .filter(|job| part(&month, job, "gpu") == Some(gpus))
            .map(|job| job.run)
            .collect();
        runs.sort_unstable_by(f64::total_cmp);
        runs[runs.len() / 2]
    };
    // The medians of those Philly jobs that run for five minutes or more.
    assert!((median(1) / 2_474.0 - 1.0).abs() < 0.05, "{}", median(1));
}
