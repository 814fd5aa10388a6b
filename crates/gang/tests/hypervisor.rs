//! What holds in the simulated hypervisor for any jobs and policy.
#![allow(missing_docs, clippy::unwrap_used)]

mod hypervisor_support;

use hypervisor_support::{barrier, endless, run, setup};
use proptest::collection::vec;
use proptest::prelude::*;
use topolane_gang::SliceLimits;
use topolane_gang::hypervisor::{GangOutcome, Length, Setup, Spell, Task, ThreadWorkload};

const ROUNDING: f64 = 1e-6;

fn workloads() -> impl Strategy<Value = ThreadWorkload> {
    prop_oneof![
        (1e-3..0.2).prop_map(|iteration| ThreadWorkload::Independent { iteration }),
        (2e-4..2e-2, any::<bool>(), 0.0..0.5).prop_map(|(interval, spin, imbalance)| {
            ThreadWorkload::Barrier { interval, spin, imbalance }
        }),
        (0.0..0.01, 1_u32..20, 1e-3..0.01, 0.0..1.0, 0.0..0.02).prop_map(
            |(coarse, tasks, fine, spread, wait)| ThreadWorkload::Coevp {
                coarse,
                tasks,
                fine,
                spread,
                wait
            }
        ),
    ]
}

fn tasks(most: usize) -> impl Strategy<Value = Task> {
    let length = prop_oneof![
        (1_u64..200).prop_map(Length::Iterations),
        (0.1..3.0).prop_map(Length::Seconds),
    ];
    (1..=most, 0.5..4.0, 0.0..1.0, 0.0..0.5, workloads(), length, any::<u64>()).prop_map(
        |(threads, weight, arrival, delay, workload, length, seed)| Task {
            threads,
            weight,
            arrival,
            delays: [0.0, delay][..threads.min(2)].to_vec(),
            workload,
            length,
            seed,
        },
    )
}

fn setups() -> impl Strategy<Value = Setup> {
    (1_usize..7).prop_flat_map(|cores| {
        let background = prop_oneof![Just(0.0), 0.01..0.3];
        (vec(tasks(2 * cores), 0..6), background, any::<u64>()).prop_map(
            move |(jobs, background, seed)| Setup { background, seed, ..setup(jobs, cores, 3.0) },
        )
    })
}

fn policies() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("batch"), Just("free"), Just("gang"), Just("adaptive")]
}

/// The spells in which threads ran, in order of core and start.
fn on_cores(outcome: &GangOutcome) -> Vec<Spell> {
    let mut spells: Vec<Spell> = outcome.spells.iter().copied().filter(|it| it.ran).collect();
    spells.sort_by(|one, other| {
        (one.core, one.start).partial_cmp(&(other.core, other.start)).unwrap()
    });
    spells
}

/// The start, the end, the first jobs and the fillers of every slice.
fn slices(outcome: &GangOutcome) -> Vec<(f64, f64, &[usize], &[usize])> {
    let ends = outcome.slices.iter().skip(1).map(|slice| slice.start).chain([outcome.seconds]);
    let each = outcome.slices.iter().zip(ends);
    each.map(|(it, end)| (it.start, end, &it.first[..], &it.fillers[..])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every second of a thread's life is spent running, ready, blocked or stopped, and the seconds that a job ran are
    /// those of its spells on the cores. A core runs one thread at a time, and a thread is on one core at a time.
    #[test]
    fn thread_seconds_are_conserved(setup in setups(), policy in policies()) {
        let outcome = run(&setup, policy);
        for (at, job) in outcome.jobs.iter().enumerate() {
            let spent = job.ran + job.ready + job.blocked + job.stopped;
            prop_assert!((spent - job.lifetime).abs() < ROUNDING, "{spent} {job:?}");
            let seen = outcome.spells.iter().filter(|spell| spell.ran && spell.job == at);
            let seen: f64 = seen.map(|spell| spell.end - spell.start).sum();
            prop_assert!((seen - job.ran).abs() < ROUNDING, "{seen} {job:?}");
        }
        let mut spells = on_cores(&outcome);
        for pair in spells.windows(2).filter(|pair| pair[0].core == pair[1].core) {
            prop_assert!(pair[0].end <= pair[1].start, "{pair:?}");
        }
        spells.sort_by(|one, other| {
            (one.job, one.thread, one.start).partial_cmp(&(other.job, other.thread, other.start)).unwrap()
        });
        let same = |pair: &&[Spell]| (pair[0].job, pair[0].thread) == (pair[1].job, pair[1].thread);
        for pair in spells.windows(2).filter(same) {
            prop_assert!(pair[0].end <= pair[1].start, "{pair:?}");
        }
    }

    /// A job ends after its iterations, and no earlier than its work takes, under any policy.
    #[test]
    fn every_iteration_is_run(setup in setups(), policy in policies()) {
        let outcome = run(&setup, policy);
        for (task, job) in setup.jobs.iter().zip(&outcome.jobs) {
            if let (Length::Iterations(count), Some(_)) = (task.length, job.finished) {
                for ends in &job.ends {
                    prop_assert_eq!(ends.len() as u64, count);
                }
            }
            let ThreadWorkload::Independent { iteration } = task.workload else { continue };
            let did: usize = job.ends.iter().map(Vec::len).sum();
            prop_assert!(job.ran + ROUNDING >= did as f64 * iteration);
        }
    }

    /// Under credit alone all jobs may run on every core, so no core idles while a thread is ready.
    #[test]
    fn the_credit_scheduler_wastes_no_core(setup in setups()) {
        let outcome = run(&setup, "free");
        if setup.background > 0.0 {
            return Ok(());
        }
        let mut edges: Vec<(f64, i64, i64)> = Vec::new();
        for spell in &outcome.spells {
            let (running, ready) = if spell.ran { (1, 0) } else { (0, 1) };
            edges.push((spell.start, running, ready));
            edges.push((spell.end, -running, -ready));
        }
        edges.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut running, mut ready, mut before) = (0, 0, 0.0);
        let cores = i64::try_from(setup.cores).unwrap();
        for (at, more_running, more_ready) in edges {
            if at > before + 1e-9 {
                prop_assert!(ready == 0 || running == cores, "{running} {ready} at {at}");
            }
            running += more_running;
            ready += more_ready;
            before = at;
        }
    }

    /// Only jobs of the slice run in it. So under gang, threads of jobs that share no row never run at the same time.
    #[test]
    fn only_the_slices_jobs_run(setup in setups(), policy in policies()) {
        let outcome = run(&setup, policy);
        let slices = slices(&outcome);
        for spell in &outcome.spells {
            for (start, end, first, fillers) in &slices {
                if spell.start < end - ROUNDING && spell.end > start + ROUNDING {
                    prop_assert!(first.contains(&spell.job) || fillers.contains(&spell.job), "{spell:?}");
                }
            }
        }
    }

    /// A ready first thread does not wait for a core that runs a filler. So a filler costs a barrier at most the switch
    /// away from it.
    #[test]
    fn fillers_hold_up_no_first_thread(setup in setups()) {
        let outcome = run(&setup, "adaptive");
        let cores = on_cores(&outcome);
        for (start, end, first, fillers) in slices(&outcome) {
            let within = |spell: &&Spell| spell.start < end && spell.end > start;
            let waits = |spell: &&Spell| !spell.ran && first.contains(&spell.job);
            for wait in outcome.spells.iter().filter(within).filter(waits) {
                let held = cores.iter().filter(within).filter(|spell| {
                    spell.core == wait.core && fillers.contains(&spell.job)
                });
                for filler in held {
                    let overlap = filler.end.min(wait.end).min(end) - filler.start.max(wait.start).max(start);
                    prop_assert!(overlap <= setup.costs.context_switch + ROUNDING, "{wait:?} {filler:?}");
                }
            }
        }
    }

    /// While no job comes or goes and all slices have one length, a gang waits between its slices no longer than
    /// `Round::delay` says.
    #[test]
    fn a_gang_waits_no_longer_than_its_round_says(
        threads in vec(1_usize..5, 2..6),
        slice in 0.01_f64..0.05,
    ) {
        let jobs = threads.iter().map(|&threads| endless(threads, barrier(1e-3, true))).collect();
        let limits = SliceLimits { slice: Some(slice), ..SliceLimits::default() };
        let setup = Setup { limits, ..setup(jobs, 4, 2.0) };
        let outcome = run(&setup, "gang");
        for job in 0..threads.len() {
            let mut since = 0.0;
            for (it, (start, end, first, _)) in outcome.slices.iter().zip(slices(&outcome)) {
                let Some(place) = first.iter().position(|&one| one == job) else { continue };
                let (waited, delay) = (start - since, it.delays[place]);
                prop_assert!(waited <= delay + ROUNDING, "{waited} {delay}");
                since = end;
            }
            prop_assert!(since > 1.0);
        }
    }

    /// Under batch, no job begins before one that came earlier. A job on cores of its own is never ready for long.
    #[test]
    fn batch_keeps_the_order(setup in setups()) {
        let outcome = run(&setup, "batch");
        let mut order: Vec<usize> = (0..setup.jobs.len()).collect();
        order.sort_by(|&one, &other| setup.jobs[one].arrival.total_cmp(&setup.jobs[other].arrival));
        let begins = |&job: &usize| {
            let spells = outcome.spells.iter().filter(|spell| spell.job == job);
            spells.map(|spell| spell.start).fold(f64::INFINITY, f64::min)
        };
        let begins: Vec<f64> = order.iter().map(begins).collect();
        prop_assert!(begins.is_sorted(), "{begins:?}");
    }

    /// The same setup gives the same outcome.
    #[test]
    fn it_is_deterministic(setup in setups(), policy in policies()) {
        prop_assert_eq!(run(&setup, policy), run(&setup, policy));
    }
}
