//! What holds for the policies while jobs come and go.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use topolane_gang::{
    Barriers, JobId, Observation, ObservedJob, Round, Slice, SliceLimits, Used, gang_policy,
};
use topolane_gang::{Matrix, Observer};

const CORES: usize = 8;

fn job(id: JobId, threads: usize) -> ObservedJob {
    ObservedJob { id, threads, weight: 1.0, fills: true, seen: Observation::default() }
}

fn blocked(job: ObservedJob, share: f64) -> ObservedJob {
    ObservedJob { seen: Observation { blocked: Some(share), ..job.seen }, ..job }
}

fn weighing(job: ObservedJob, weight: f64) -> ObservedJob {
    ObservedJob { weight, ..job }
}

/// A job of any size, even wider than the machine, with any observations.
fn any_job() -> impl Strategy<Value = ObservedJob> {
    let barriers = (1e-4..3.0, 0.0..0.1).prop_map(|(interval, skew)| Barriers { interval, skew });
    let seen = (proptest::option::of(0.0..=1.0), proptest::option::of(barriers));
    let jobs = (1..=CORES + 2, 0.1..10.0, any::<bool>(), seen);
    jobs.prop_map(|(threads, weight, fills, (blocked, barriers))| ObservedJob {
        id: 0,
        threads,
        weight,
        fills,
        seen: Observation { blocked, barriers },
    })
}

/// The jobs at each question. Between two questions one job comes or one goes.
fn histories() -> impl Strategy<Value = Vec<Vec<ObservedJob>>> {
    let steps =
        proptest::collection::vec((any_job(), any::<prop::sample::Index>(), any::<bool>()), 1..20);
    steps.prop_map(|steps| {
        let mut jobs: Vec<ObservedJob> = Vec::new();
        let mut history = Vec::new();
        for (id, (job, leaves, comes)) in steps.into_iter().enumerate() {
            if comes || jobs.is_empty() {
                jobs.push(ObservedJob { id: id as JobId, ..job });
            } else {
                jobs.remove(leaves.index(jobs.len()));
            }
            history.push(jobs.clone());
        }
        history
    })
}

fn rounds(policy: &str, history: &[Vec<ObservedJob>], limits: &SliceLimits) -> Vec<Round> {
    let mut policy = gang_policy(policy).unwrap();
    history.iter().map(|jobs| policy.round(jobs, CORES, limits)).collect()
}

fn one_round(policy: &str, jobs: &[ObservedJob], limits: &SliceLimits) -> Round {
    gang_policy(policy).unwrap().round(jobs, CORES, limits)
}

fn first_somewhere(round: &Round, job: JobId) -> bool {
    round.slices.iter().any(|slice| slice.first.contains(&job))
}

proptest! {
    /// No core has two gangs in one slice, and every thread of a gang has a core. So all gangs of a slice can run at
    /// once.
    #[test]
    fn gangs_have_their_cores_alone(history in histories()) {
        for policy in ["batch", "gang", "adaptive"] {
            for (jobs, round) in history.iter().zip(rounds(policy, &history, &SliceLimits::default())) {
                for slice in &round.slices {
                    let gangs = slice.first.iter().filter(|job| round.gangs.contains(job));
                    let mut cores: Vec<usize> = gangs.flat_map(|job| &round.cores[job]).copied().collect();
                    let all = cores.len();
                    cores.sort_unstable();
                    cores.dedup();
                    prop_assert_eq!(cores.len(), all, "{}", policy);
                }
                for id in &round.gangs {
                    let threads = jobs.iter().find(|job| job.id == *id).unwrap().threads;
                    prop_assert_eq!(round.cores[id].len(), threads.min(CORES));
                }
            }
        }
    }

    /// Every job has a slice of its own in each round. It waits for this slice no longer than the allowed delay, or
    /// than the shortest slices of all other rows take.
    #[test]
    fn no_job_waits_longer_than_allowed(history in histories(), delay in 0.02..2.0) {
        let limits = SliceLimits { delay, ..SliceLimits::default() };
        for policy in ["gang", "adaptive"] {
            for (jobs, round) in history.iter().zip(rounds(policy, &history, &limits)) {
                let shortest = (round.slices.len().saturating_sub(1)) as f64 * limits.shortest;
                for job in jobs {
                    prop_assert!(first_somewhere(&round, job.id), "{policy}");
                    prop_assert!(round.delay(job.id) <= delay.max(shortest) + 1e-9, "{policy}");
                }
            }
        }
    }

    /// A job that cannot run behind others is never a filler.
    #[test]
    fn only_jobs_that_can_fill_are_fillers(history in histories()) {
        for (jobs, round) in history.iter().zip(rounds("adaptive", &history, &SliceLimits::default())) {
            for id in round.slices.iter().flat_map(|slice| &slice.fillers) {
                prop_assert!(jobs.iter().any(|job| job.id == *id && job.fills));
            }
        }
    }

    /// No slice is shorter than the shortest allowed, whatever the weights.
    #[test]
    fn no_slice_is_too_short(history in histories()) {
        let limits = SliceLimits::default();
        for policy in ["gang", "adaptive"] {
            for round in rounds(policy, &history, &limits) {
                prop_assert!(round.slices.iter().all(|slice| slice.seconds >= limits.shortest));
            }
        }
    }

    /// Two rows whose jobs would fit into one are made one, also after jobs have gone.
    #[test]
    fn rows_are_unified(history in histories()) {
        let mut matrix = Matrix::new(CORES);
        for jobs in &history {
            matrix.retain(|id| jobs.iter().any(|job| job.id == id));
            for job in jobs {
                if !matrix.contains(job.id) {
                    matrix.place(job.id, job.threads.min(CORES));
                }
            }
            let used: Vec<usize> = (0..matrix.rows().len()).map(|row| CORES - matrix.free(row).len()).collect();
            for (row, one) in used.iter().enumerate() {
                prop_assert!(used[..row].iter().all(|other| one + other > CORES), "{matrix:?}");
            }
        }
    }

    /// In batch no job overtakes another: the jobs that run came before all jobs that wait.
    #[test]
    fn batch_keeps_the_order(history in histories()) {
        for (jobs, round) in history.iter().zip(rounds("batch", &history, &SliceLimits::default())) {
            let running = round.slices[0].first.len();
            let came: Vec<JobId> = jobs.iter().take(running).map(|job| job.id).collect();
            prop_assert_eq!(&round.slices[0].first, &came);
            prop_assert!(running > 0 || jobs.is_empty());
        }
    }

    /// A filler is not a first job of its slice, and has cores. Only adaptive has fillers.
    #[test]
    fn fillers_fill(history in histories()) {
        for policy in ["batch", "free", "gang", "adaptive"] {
            for round in rounds(policy, &history, &SliceLimits::default()) {
                for Slice { first, fillers, .. } in &round.slices {
                    prop_assert!(fillers.is_empty() || policy == "adaptive");
                    prop_assert!(fillers.iter().all(|job| !first.contains(job) && !round.cores[job].is_empty()));
                }
            }
        }
    }

    /// The same questions in the same order get the same answers.
    #[test]
    fn answers_repeat(history in histories()) {
        for policy in ["batch", "free", "gang", "adaptive"] {
            let limits = SliceLimits::default();
            prop_assert_eq!(rounds(policy, &history, &limits), rounds(policy, &history, &limits));
        }
    }

    /// If no job is ever seen to block, and every job has more than one thread and a core for each, adaptive makes the
    /// same gangs as gang.
    #[test]
    fn adaptive_is_gang_by_default(history in histories()) {
        let busy = |jobs: &Vec<ObservedJob>| -> Vec<ObservedJob> {
            let plain = |known: &ObservedJob| ObservedJob { threads: known.threads.clamp(2, CORES), ..known.clone() };
            jobs.iter().map(plain).map(|job| ObservedJob { seen: Observation::default(), ..job }).collect()
        };
        let history: Vec<Vec<ObservedJob>> = history.iter().map(busy).collect();
        let limits = SliceLimits::default();
        for (one, other) in rounds("gang", &history, &limits).iter().zip(rounds("adaptive", &history, &limits)) {
            prop_assert_eq!(&one.cores, &other.cores);
            for (one, other) in one.slices.iter().zip(&other.slices) {
                prop_assert_eq!((&one.first, one.seconds), (&other.first, other.seconds));
            }
        }
    }
}

/// Of two jobs as wide as the machine, one has twice the weight and gets two thirds of the time.
#[test]
fn time_goes_by_weight() {
    let round = one_round("gang", &[weighing(job(0, 8), 2.0), job(1, 8)], &SliceLimits::default());
    let share = round.slices[0].seconds / round.seconds();
    assert!((share - 2.0 / 3.0).abs() < 1e-9);
}

/// A slice length that a user chose is kept, even if the delay is then longer than allowed.
#[test]
fn a_chosen_slice_is_kept() {
    let limits = SliceLimits { slice: Some(5.0), ..SliceLimits::default() };
    let round = one_round("gang", &[job(0, 8), job(1, 8)], &limits);
    assert_eq!(round.slices.iter().map(|slice| slice.seconds).collect::<Vec<f64>>(), [5.0, 5.0]);
}

/// A slice is long enough for two conditions: switching takes at most a hundredth of it, and it holds twenty barriers.
#[test]
fn slices_are_as_long_as_switches_and_barriers_ask() {
    let limits = SliceLimits { switch: 2e-4, overhead: 0.01, ..SliceLimits::default() };
    let seconds = |jobs: &[ObservedJob]| one_round("gang", jobs, &limits).slices[0].seconds;
    assert!((seconds(&[job(0, 8), job(1, 8)]) - 0.02).abs() < 1e-9);
    let barriers = Some(Barriers { interval: 0.005, skew: 0.0 });
    let meets = ObservedJob { seen: Observation { blocked: None, barriers }, ..job(0, 8) };
    assert!((seconds(&[meets, job(1, 8)]) - 0.1).abs() < 1e-9);
    // If barriers are so far apart that the longest slice does not hold many, a longer slice gains nothing.
    let barriers = Some(Barriers { interval: 0.18, skew: 0.0 });
    let meets =
        ObservedJob { seen: Observation { barriers, ..Observation::default() }, ..job(0, 8) };
    assert!((seconds(&[meets, job(1, 8)]) - 0.02).abs() < 1e-9);
}

/// A narrow job also runs in other slices in which its columns are empty, so no core idles that it could use.
#[test]
fn alternates_use_empty_columns() {
    let round = one_round("gang", &[job(0, 6), job(1, 5), job(2, 3)], &SliceLimits::default());
    let of: Vec<&[JobId]> = round.slices.iter().map(|slice| slice.first.as_slice()).collect();
    assert_eq!(of, [&[0][..], &[1, 2]]);
    let round = one_round("gang", &[job(0, 2), job(1, 8)], &SliceLimits::default());
    assert_eq!(round.slices.len(), 2);
    let narrow = one_round("gang", &[job(0, 5), job(1, 5), job(2, 2)], &SliceLimits::default());
    assert_eq!(narrow.slices.iter().filter(|slice| slice.first.contains(&2)).count(), 2);
}

/// A job whose threads are blocked for more than a tenth of their time is no gang. It becomes a gang again only when they
/// are blocked for much less.
#[test]
fn a_job_that_blocks_is_loose_until_it_is_busy() {
    let mut policy = gang_policy("adaptive").unwrap();
    let mut is_gang = |share: f64| {
        let jobs = [blocked(job(0, 8), share), job(1, 8)];
        policy.round(&jobs, CORES, &SliceLimits::default()).gangs.contains(&0)
    };
    assert_eq!([0.08, 0.12, 0.08, 0.02, 0.08].map(&mut is_gang), [true, false, false, true, true]);
}

/// A job whose barriers are further apart than a gang may have to wait is not made a gang.
#[test]
fn a_job_that_hardly_meets_is_loose() {
    let limits = SliceLimits::default();
    let barriers = Some(Barriers { interval: 1.5 * limits.delay, skew: 0.0 });
    let meets = ObservedJob { seen: Observation { blocked: None, barriers }, ..job(0, 8) };
    assert_eq!(one_round("adaptive", &[meets, job(1, 8)], &limits).gangs, [1]);
}

/// In the slice of a job that blocks, the job that computes most is the filler. The slice of a busy job has no filler.
#[test]
fn blocked_cores_go_to_whom_they_serve_most() {
    let jobs = [blocked(job(0, 8), 0.09), blocked(job(1, 8), 0.08), blocked(job(2, 8), 0.0)];
    let round = one_round("adaptive", &jobs, &SliceLimits::default());
    assert_eq!(round.slices[0].fillers, [2]);
    assert_eq!(round.slices[2].fillers, []);
}

/// A row that others fill in part runs for longer, so that its own jobs get their share.
#[test]
fn filled_rows_run_longer() {
    let jobs = [blocked(job(0, 8), 0.5), blocked(job(1, 8), 0.0)];
    let round = one_round("adaptive", &jobs, &SliceLimits::default());
    let loose = round.slices.iter().find(|slice| slice.first == [0]).unwrap();
    assert!((loose.seconds / round.seconds() - 2.0 / 3.0).abs() < 1e-9);
}

/// Of two equal jobs, the one that was a filler for less time fills next.
#[test]
fn fillers_take_turns() {
    let jobs = [blocked(job(0, 8), 0.08), blocked(job(1, 8), 0.0), blocked(job(2, 8), 0.0)];
    let mut policy = gang_policy("adaptive").unwrap();
    let mut filler =
        || policy.round(&jobs, CORES, &SliceLimits::default()).slices[0].fillers.clone();
    assert_eq!([filler(), filler(), filler()], [[1], [2], [1]]);
}

/// The blocked share is the part of the time not spent ready in which a job did not run. Old times fade. A job that was
/// not allowed to run changes nothing.
#[test]
fn the_observer_forgets_slowly() {
    let mut observer = Observer::new();
    let mut learn = |job, threads, given, ran, ready| {
        observer.learn(job, threads, Used { given, ran, ready, barriers: None });
        observer.seen(job).blocked
    };
    let long = learn(0, 1, 20.0, 10.0, 5.0);
    assert!((long.unwrap() - (1.0 - 1.0 / 1.5)).abs() < 1e-6, "{long:?}");
    assert_eq!(learn(0, 1, 0.0, 0.0, 0.0), long);
    let blocked = learn(0, 1, 1.0, 0.0, 0.0).unwrap();
    assert!(blocked > 0.7 && blocked < 0.8, "{blocked}");
    // 64 threads that are blocked for 10 ms are blocked for 10 ms, not for 0.64 s.
    assert_eq!(learn(1, 64, 64.0, 64.0, 0.0), Some(0.0));
    assert!(learn(1, 64, 0.64, 0.0, 0.0).unwrap() < 0.02);
    observer.forget(0);
    assert_eq!(observer.seen(0), Observation::default());
}

/// If time is counted as ready one sample too late, no job looks blocked because of it.
#[test]
fn late_counts_make_up_for_early_ones() {
    let mut observer = Observer::new();
    for sample in 0..2000 {
        let ready = if sample % 2 == 0 { 0.0 } else { 0.01 };
        observer.learn(0, 1, Used { given: 0.01, ran: 0.005, ready, barriers: None });
    }
    assert!(observer.seen(0).blocked.unwrap() < 0.02);
}

/// A job begins as one that never blocks. After being blocked for a tenth of a second it is still a gang, and after
/// half a second it is not.
#[test]
fn a_short_beginning_makes_no_job_loose() {
    let mut observer = Observer::new();
    let mut policy = gang_policy("adaptive").unwrap();
    let mut is_gang = |seconds: f64| {
        observer.learn(0, 4, Used { given: 4.0 * seconds, ..Used::default() });
        let jobs = [ObservedJob { seen: observer.seen(0), ..job(0, 4) }, job(1, 8)];
        policy.round(&jobs, CORES, &SliceLimits::default()).gangs.contains(&0)
    };
    assert_eq!([0.1, 0.4].map(&mut is_gang), [true, false]);
}
