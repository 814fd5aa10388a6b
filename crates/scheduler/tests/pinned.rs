//! EASY that lets fewer jobs overtake: only those that end before the reservation, or around its nodes.
#![allow(clippy::unwrap_used, clippy::float_cmp)]

mod common;

use common::{Job, jobs, machine, mixed, rule, run};
use proptest::prelude::*;
use topolane_placement::Share;
use topolane_scheduler::{Pass, Queue, Scheduler, View};

/// Both rules in plain form, with nothing kept from pass to pass: the head gets nodes at the earliest end at which the
/// policy can place it. A job that ends by then is placed as the machine is now. Under `easy-strict` no other job starts.
/// Under `easy-pinned` another is placed in the state in which the head is on its nodes already, next to all running
/// jobs, and starts if the head can still be placed then.
struct Plain {
    strict: bool,
}

impl Queue for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let (waiting, now) = (view.waiting, view.now);
        let mut jobs = (0..waiting.len()).filter(|&job| waiting[job].begin <= now);
        let Some(head) = jobs.find(|&job| view.place_and_start(job).is_err()) else {
            return Pass::default();
        };
        let (head, policy) = (&waiting[head].request, view.policy);
        let mut then = view.occupancy.clone();
        let mut at = f64::INFINITY;
        for ending in view.running.ending_together() {
            for job in ending {
                then.release(&job.placement);
            }
            if policy.can_place(head, &then).is_ok() {
                at = ending[0].expected_end.max(now);
                break;
            }
        }
        let mut with_head = view.occupancy.clone();
        if let Ok(reserved) = policy.place(head, &then) {
            with_head.overlay(&reserved);
        }
        for job in jobs.collect::<Vec<_>>() {
            let request = &waiting[job].request;
            let in_time = now + waiting[job].walltime <= at;
            if self.strict && !in_time {
                continue;
            }
            let state = if in_time { &*view.occupancy } else { &with_head };
            let Ok(placement) = policy.place(request, state) else { continue };
            if !in_time {
                then.claim(&placement).unwrap();
                if policy.can_place(head, &then).is_err() {
                    then.release(&placement);
                    continue;
                }
            }
            with_head.overlay(&placement);
            assert!(view.start(job, placement.into()));
        }
        Pass::default()
    }
}

fn agrees_with_the_plain_form(policy: &str, jobs: &[Job]) {
    for (discipline, strict) in [("easy-strict", true), ("easy-pinned", false)] {
        let quick = run(policy, discipline, jobs);
        let mut scheduler = Scheduler::new(machine(), rule(policy), Box::new(Plain { strict }));
        let plain = common::drive(&mut scheduler, jobs, |_, _| ());
        assert_eq!(
            (quick.start, quick.nodes),
            (plain.start, plain.nodes),
            "{discipline} over {policy}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// What is remembered saves time and changes no start and no node.
    #[test]
    fn it_starts_what_the_plain_form_starts(jobs in jobs(60)) {
        for policy in ["first-fit", "isolated", "last-run"] {
            agrees_with_the_plain_form(policy, &jobs);
        }
    }

    /// The same where jobs share nodes.
    #[test]
    fn it_starts_what_the_plain_form_starts_on_shared_nodes(jobs in mixed(40)) {
        for policy in ["first-fit", "isolated"] {
            agrees_with_the_plain_form(policy, &jobs);
        }
    }
}

fn job(nodes: u32, walltime: f64) -> Job {
    Job { submit: 0.0, run: walltime, walltime, nodes, share: Share::Whole }
}

/// By hand, first fit on 24 nodes: a job of 16 runs until 10 on nodes 0 to 15. The head wants 20 and is reserved nodes 0
/// to 19. A job of 4 that runs past 10 gets nodes 20 to 23. Under `easy` it gets nodes 16 to 19, since the head can be
/// placed around it; under `easy-strict` it waits. A job that ends by 10 gets nodes 16 to 19 under all.
#[test]
fn a_job_that_runs_past_the_reservation_stays_off_its_nodes() {
    let jobs = [job(16, 10.0), job(20, 10.0), job(4, 30.0), job(4, 10.0)];
    for (discipline, long, short) in [
        ("easy-pinned", Some(vec![20, 21, 22, 23]), Some(vec![16, 17, 18, 19])),
        ("easy", Some(vec![16, 17, 18, 19]), Some(vec![20, 21, 22, 23])),
        ("easy-strict", None, Some(vec![16, 17, 18, 19])),
    ] {
        let run = run("first-fit", discipline, &jobs);
        let at_once = |id: usize| (run.start[id] == Some(0.0)).then(|| run.nodes[id].clone());
        assert_eq!((at_once(2), at_once(3)), (long, short), "{discipline}");
        assert_eq!(run.start[1], Some(10.0), "{discipline}");
    }
}
