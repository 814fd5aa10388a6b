//! Promises are kept, over policies that may refuse a job although enough nodes are free.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::collections::HashMap;

use common::{
    COUNTING, EASY, Job, PICKY, Run, jobs, machine, mixed, no_core_twice, promised, rule, run,
};
use proptest::prelude::*;
use topolane_scheduler::{Scheduler, queue};

fn pairs<'a>(
    policies: impl IntoIterator<Item = &'a str>,
    disciplines: impl IntoIterator<Item = &'a str> + Clone,
) -> Vec<(&'a str, &'a str)> {
    let with_all = |policy| disciplines.clone().into_iter().map(move |one| (policy, one));
    policies.into_iter().flat_map(with_all).collect()
}

/// Asserts that a head starts no later than it was first promised, and that its promise never moves to a later time.
fn heads_are_never_delayed(run: &Run) {
    let mut promised: HashMap<u64, f64> = HashMap::new();
    for promise in &run.reservations {
        let before = *promised.entry(promise.id).or_insert(promise.at);
        assert!(
            promise.at <= before,
            "job {} was promised {before}, then {}",
            promise.id,
            promise.at
        );
        promised.insert(promise.id, promise.at);
    }
    for (id, at) in promised {
        let start = run.start[id as usize];
        assert!(
            start.is_some_and(|start| start <= at),
            "job {id}: promised {at}, started {start:?}"
        );
    }
}

/// Asserts that a pass that assumes that everything changed starts the same jobs as the quick pass.
fn a_full_pass_agrees(policy: &str, discipline: &str, jobs: &[Job]) {
    let quick = run(policy, discipline, jobs);
    let mut scheduler = Scheduler::new(machine(), rule(policy), queue(discipline).unwrap());
    let full =
        common::drive(&mut scheduler, jobs, |scheduler, _| scheduler.set_in_service(0, true));
    let same = quick.start == full.start && quick.nodes == full.nodes;
    assert!(
        same,
        "{discipline} over {policy}: {:?}, but from scratch {:?}",
        quick.start, full.start
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// EASY: the head of the queue starts no later than the first reservation it got, and its
    /// reservation never moves later, over any policy for which fewer jobs are no obstacle.
    #[test]
    fn easy_never_delays_the_head(jobs in jobs(60)) {
        for (policy, discipline) in pairs(PICKY.into_iter().chain(COUNTING), EASY) {
            let run = run(policy, discipline, &jobs);
            heads_are_never_delayed(&run);
            no_core_twice(&jobs, &run);
        }
    }

    /// EASY delays no head where jobs share nodes either.
    #[test]
    fn easy_never_delays_the_head_on_shared_nodes(jobs in mixed(60)) {
        for (policy, discipline) in pairs(["isolated", "first-fit", "hop-bytes"], EASY) {
            let run = run(policy, discipline, &jobs);
            heads_are_never_delayed(&run);
            no_core_twice(&jobs, &run);
        }
    }

    /// Conservative: no job starts later than it was first promised, and every job that waits was promised a time. This
    /// holds over any policy that can place a job again where all nodes of an earlier placement are free. `blocks`
    /// cannot: it wants the whole block.
    #[test]
    fn conservative_keeps_every_promise(jobs in jobs(40)) {
        for policy in ["isolated", "last-run"].into_iter().chain(COUNTING) {
            let (run, first) = promised(policy, &jobs);
            no_core_twice(&jobs, &run);
            for (id, start) in run.start.iter().enumerate() {
                let Some(start) = start else { continue };
                let waited = *start > jobs[id].submit;
                let promise = first.get(&(id as u64));
                prop_assert!(promise.is_none_or(|at| start <= at), "{}: job {} at {}, not {:?}", policy, id, start, promise);
                prop_assert!(promise.is_some() || !waited, "{}: job {} waits unpromised", policy, id);
            }
        }
    }

    /// Conservative on shared nodes: every job that waits is promised a time, and no core is given
    /// twice.
    #[test]
    fn conservative_promises_to_all_on_shared_nodes(jobs in mixed(40)) {
        for policy in ["isolated", "first-fit"] {
            let (run, first) = promised(policy, &jobs);
            no_core_twice(&jobs, &run);
            for (id, start) in run.start.iter().enumerate() {
                let waited = start.is_some_and(|start| start > jobs[id].submit);
                prop_assert!(first.contains_key(&(id as u64)) || !waited, "{}: job {}", policy, id);
            }
        }
    }

    /// From pass to pass EASY keeps the head's reservation and the sizes refused since. This only saves time: a pass
    /// that forgets both starts the same jobs on the same nodes.
    #[test]
    fn easy_decides_the_same_from_scratch(jobs in jobs(60)) {
        for (policy, discipline) in pairs(PICKY.into_iter().chain(COUNTING), EASY) {
            a_full_pass_agrees(policy, discipline, &jobs);
        }
    }

    /// A pass that forgets everything starts the same jobs where links have owners, too. There EASY also keeps a place
    /// for the head, which is good until a job takes a part of it.
    #[test]
    fn easy_decides_the_same_from_scratch_where_links_have_owners(jobs in jobs(60)) {
        for (policy, discipline) in pairs(["jigsaw", "laas"], EASY) {
            a_full_pass_agrees(policy, discipline, &jobs);
        }
    }

    /// A pass that forgets everything starts the same jobs where jobs share nodes, too, and under fcfs, which keeps
    /// nothing.
    #[test]
    fn easy_decides_the_same_from_scratch_on_shared_nodes(jobs in mixed(60)) {
        for (policy, discipline) in pairs(["isolated", "first-fit"], EASY.into_iter().chain(["fcfs"])) {
            a_full_pass_agrees(policy, discipline, &jobs);
        }
    }

    /// Every job that can ever run does run, under every discipline.
    #[test]
    fn no_job_starves(jobs in mixed(40)) {
        let under_easy = pairs(["isolated"], EASY);
        for (policy, discipline) in under_easy.into_iter().chain([("isolated", "conservative"), ("first-fit", "conservative"), ("blocks", "fcfs")]) {
            let run = run(policy, discipline, &jobs);
            let started = run.start.iter().filter(|start| start.is_some()).count();
            let whole = policy != "blocks";
            prop_assert!(!whole || started == jobs.len(), "{} over {}: {:?}", discipline, policy, run.start);
        }
    }
}
