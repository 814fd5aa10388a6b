//! What a run on a network promises, whatever the model and the routing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod simulation_support;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use simulation_support::network::{coupled, on, options, sevenths, tapered, with_walltime};
use simulation_support::{PLAIN, jobs, rule, try_run};
use topolane_fabric::{InputError, ROUTINGS};
use topolane_scheduler::{Pass, Queue, Reservation, View, queue};
use topolane_simulator::workload::Workload;
use topolane_simulator::{Metrics, Network, Outcome, RunOptions, simulate, tables};
use topolane_traffic::{Flows, MODELS, contention};

/// A discipline that notes what it promises.
struct Watched {
    inner: Box<dyn Queue>,
    promises: Arc<Mutex<Vec<Reservation>>>,
}

impl Queue for Watched {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let pass = self.inner.pass(view);
        self.promises.lock().unwrap().extend(pass.reservation);
        pass
    }
}

/// Returns what each running job has done by its end, in seconds of a run alone. Between two events the running jobs go
/// at the pace of a model that is made for them alone.
fn replayed(jobs: &Workload, outcome: &Outcome, network: &Network) -> Vec<f64> {
    let traffic = |job: &topolane_simulator::JobOutcome| {
        let pattern = network.pattern_of(&jobs.jobs[job.job], 0);
        assert_eq!(pattern, job.pattern);
        let traffic = network.patterns[pattern].traffic(job.placement.nodes().len() as u32, 0);
        Arc::new(Flows::new(&traffic.unwrap(), job.placement.nodes(), &*network.routing).unwrap())
    };
    let flows: Vec<_> = outcome.jobs.iter().map(traffic).collect();
    let mut moments: Vec<f64> =
        outcome.jobs.iter().flat_map(|job| [job.start, job.finish]).collect();
    moments.sort_unstable_by(f64::total_cmp);
    moments.dedup();
    let mut done = vec![0.0; outcome.jobs.len()];
    for between in moments.windows(2) {
        let mut model = contention(network.model.name, &*network.routing).unwrap();
        let all = outcome.jobs.iter().enumerate();
        let here = all.filter(|(_, job)| job.start <= between[0] && job.finish >= between[1]);
        let here: Vec<usize> = here.map(|(index, _)| index).collect();
        for &index in here.iter().filter(|&&index| outcome.jobs[index].placement.spans_nodes()) {
            model.enter(index as u64, Arc::clone(&flows[index]));
        }
        let slowed: HashMap<u64, f64> = model.settle().into_iter().collect();
        for index in here {
            let slowdown = slowed.get(&(index as u64)).copied().unwrap_or(1.0);
            let pace = 1.0 + network.communication * network.communication * (slowdown - 1.0);
            done[index] += (between[1] - between[0]) / pace;
        }
    }
    done
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs().max(1.0)
}

/// The start, finish, walltime (each to the last bit), kill and nodes of every job.
fn fates(outcome: &Outcome) -> Vec<(u64, u64, u64, bool, Vec<u32>)> {
    let fate = |job: &topolane_simulator::JobOutcome| {
        let bits = [job.start, job.finish, job.walltime].map(f64::to_bits);
        (bits[0], bits[1], bits[2], job.killed, job.placement.nodes().to_vec())
    };
    outcome.jobs.iter().map(fate).collect()
}

fn model() -> impl Strategy<Value = &'static str> {
    prop::sample::select(MODELS.iter().map(|info| info.name).collect::<Vec<_>>())
}

fn routing() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        ROUTINGS
            .iter()
            .filter(|info| info.wirings.contains(&"tree"))
            .map(|info| info.name)
            .collect::<Vec<_>>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Under a policy that isolates, no job is ever slowed. It ends exactly when it would end alone: on shared nodes as
    /// well, under every model and routing, and with cables missing.
    #[test]
    fn isolation_slows_no_job(
        jobs in jobs(36, true),
        model in model(),
        routing in routing(),
        communication in 0.1..=1.0f64,
    ) {
        let (jobs, fabric) = (sevenths(jobs), tapered());
        let network = on(&fabric, model, routing, communication);
        let outcome = coupled(&jobs, &fabric, "isolated", network);
        for job in &outcome.jobs {
            prop_assert_eq!(job.finish.to_bits(), (job.start + job.alone).to_bits());
            prop_assert!(!job.overran);
        }
        prop_assert_eq!(outcome.late_heads, 0);
    }

    /// Jobs that do not communicate run exactly as without a network.
    #[test]
    fn without_communication_nothing_changes(
        jobs in jobs(36, true),
        model in model(),
        discipline in prop::sample::select(vec!["fcfs", "easy", "conservative"]),
    ) {
        let (jobs, fabric) = (sevenths(jobs), tapered());
        let plain = try_run(&jobs, &fabric, "random", discipline, &PLAIN).unwrap();
        let options = options(on(&fabric, model, "d-mod-k", 0.0));
        let outcome = try_run(&jobs, &fabric, "random", discipline, &options).unwrap();
        prop_assert_eq!(fates(&outcome), fates(&plain));
        prop_assert!(outcome.jobs.iter().all(|job| !job.overran));
        prop_assert!(outcome.channel_busy.iter().all(|&busy| busy == 0.0));
    }

    /// Work is conserved. A job's run is replayed between each two events, with a model made for the jobs that then
    /// run. The integral of 1 / pace over the run is what the job needs alone, or no more than that if it ended at its
    /// walltime. So channels are busy for the work that was done, f of it each.
    #[test]
    fn what_is_done_is_what_was_needed(
        jobs in jobs(36, false),
        model in model(),
        routing in routing(),
        communication in prop::sample::select(vec![0.3, 1.0]),
        kill_at_walltime: bool,
    ) {
        let (jobs, fabric) = (sevenths(jobs), tapered());
        let network = Network { kill_at_walltime, ..on(&fabric, model, routing, communication) };
        let outcome = coupled(&jobs, &fabric, "random", network.clone());
        let mut work = 0.0;
        for (job, done) in outcome.jobs.iter().zip(replayed(&jobs, &outcome, &network)) {
            let whole = close(done, job.alone);
            prop_assert!(whole || job.killed && done < job.alone, "{done} of {}", job.alone);
            work += if job.placement.spans_nodes() { communication * done } else { 0.0 };
        }
        let busiest = outcome.channel_busy.iter().copied().fold(0.0, f64::max);
        prop_assert!(busiest <= work * (1.0 + 1e-9), "busy for {busiest} of {work}");
    }

    /// A job overruns only if contention keeps it beyond its walltime, and is then counted. It is ended at its walltime
    /// only if asked for or if the log ended it there. A job without a walltime is never ended.
    #[test]
    fn overruns_and_kills_have_their_reasons(jobs in jobs(36, false), kill_at_walltime: bool) {
        let (jobs, fabric) = (sevenths(jobs), tapered());
        let network = on(&fabric, "congestion", "d-mod-k", 1.0);
        let outcome = coupled(&jobs, &fabric, "random", Network { kill_at_walltime, ..network });
        for job in &outcome.jobs {
            let submitted = &jobs.jobs[job.job];
            let by_walltime = job.start + job.walltime;
            let by_log = submitted.walltime.is_some_and(|walltime| submitted.run >= walltime);
            prop_assert_eq!(job.overran, job.finish > by_walltime);
            prop_assert!(!job.overran || job.contention() > 1.0);
            prop_assert!(!job.killed || by_log || kill_at_walltime);
            prop_assert!(!job.killed || submitted.walltime.is_some());
            prop_assert!(!(by_log || kill_at_walltime && submitted.walltime.is_some()) || !job.overran);
            prop_assert!(job.finish - job.start >= job.alone * (1.0 - 1e-9) || job.killed);
        }
        let plain = try_run(&jobs, &fabric, "random", "easy", &PLAIN).unwrap();
        prop_assert!(plain.jobs.iter().all(|job| !job.overran && job.contention() <= 1.0 + 1e-9));
    }

    /// If no job overruns, EASY keeps its promises even though jobs slow each other down. Every head starts by the time
    /// it was first promised, and none is counted as late.
    #[test]
    fn without_overruns_no_head_is_late(jobs in jobs(36, false), policy in prop::sample::select(
        vec!["first-fit", "random", "hop-bytes", "isolated"])) {
        // No job is slowed more than by all others together.
        let jobs = with_walltime(jobs, |run, others| Some((run * others).max(1.0)));
        let fabric = tapered();
        let promises = Arc::new(Mutex::new(Vec::new()));
        let easy = Watched { inner: queue("easy").unwrap(), promises: Arc::clone(&promises) };
        let options = options(on(&fabric, "congestion", "d-mod-k", 1.0));
        let outcome = simulate::<InputError>(
            &jobs, &fabric, &rule(policy), Box::new(easy), &options, &mut |_| Ok(()),
        ).unwrap();
        prop_assert!(outcome.jobs.iter().all(|job| !job.overran));
        prop_assert_eq!(outcome.late_heads, 0);
        let starts: HashMap<u64, f64> =
            outcome.jobs.iter().map(|job| (job.job as u64, job.start)).collect();
        for promise in promises.lock().unwrap().iter() {
            prop_assert!(starts[&promise.id] <= promise.at);
        }
    }

    /// The same seed gives the same bytes, with the links.
    #[test]
    fn the_same_seed_gives_the_same_bytes(jobs in jobs(36, true), model in model(), seed: u64) {
        let fabric = tapered();
        let network = on(&fabric, model, "random", 0.7);
        let bytes = || {
            let options = RunOptions { seed, ..options(network.clone()) };
            let outcome = try_run(&jobs, &fabric, "random", "easy", &options).unwrap();
            let metrics = Metrics::of(&jobs, &fabric, &outcome);
            let mut table = Vec::new();
            for (_, each) in tables(&jobs, fabric.nodes(), &outcome, &metrics, &options) {
                each.write_csv(&mut table).unwrap();
            }
            table
        };
        prop_assert!(bytes() == bytes());
    }
}
