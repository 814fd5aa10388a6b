//! Sites whose processors differ, and programs with a known compute share and time in MPI.
#![allow(clippy::unwrap_used, clippy::format_push_string)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::Fabric;
use topolane_fabric::read::machine_toml;
use topolane_placement::{Amounts, Occupancy};
use topolane_sites::{
    Cut, MovedProgram, Pair, Program, Terms, WanRoutes, choose_sites, site_policy,
};

const LATENCY: f64 = 0.005;
const BANDWIDTH: f64 = 1e8;
const REFERENCE: f64 = 2.6e9;

/// Two sites, a and b, of two hosts of four cores each, with cores of these speeds.
fn machine(speeds: [f64; 4]) -> Arc<Fabric> {
    let mut text = String::from(
        "name = \"two\"\n[node]\nsockets = 1\ncores-per-socket = 4\nmemory = 68719476736\n",
    );
    for (name, speed) in ["a1", "a2", "b1", "b2"].iter().zip(speeds) {
        text +=
            &format!("[[node-kind]]\nnodes = \"{name}\"\ncore-speed = {:?}\n", speed * REFERENCE);
    }
    for site in ["a", "b"] {
        text += &format!("[[site]]\nname = \"{site}\"\nchildren = [2]\nnodes = \"{site}[1-2]\"\n");
    }
    text += &format!(
        "[[wan]]\nbetween = [\"a\", \"b\"]\nlatency = {LATENCY}\nbandwidth = {BANDWIDTH}\n"
    );
    Arc::new(Fabric::build(&machine_toml(&text).unwrap()).unwrap())
}

/// A program on these nodes that waits `turns` times a second for its other half and computes for `compute` seconds of
/// each second.
fn program(nodes: &[u32], turns: f64, compute: f64) -> Program {
    Program {
        guests: nodes.len() as u32,
        guest: Amounts::new(1, 1 << 30),
        nodes: nodes.to_vec(),
        cut: Cut { turns, bytes: 0.0, busiest: Pair::default() },
        remaining: 36_000.0,
        settled: f64::INFINITY,
        compute,
        ..Program::default()
    }
}

fn choose(policy: &str, fabric: &Arc<Fabric>, programs: &[Program]) -> Vec<MovedProgram> {
    let occupancy = Occupancy::new(Arc::clone(fabric));
    let wan = WanRoutes::new(fabric, None);
    choose_sites(site_policy(policy).unwrap(), programs, &occupancy, &wan, &Terms::default())
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// A rank that computes all the time on a core of speed 2 does two reference-core seconds of work a second. So a second
/// of its run on a reference core takes half a second there, all of it computing. A rank that computes half of the time
/// there does one reference-core second a second. Computing for one second and communicating for half of one makes 1.5,
/// of which 1 is two thirds.
#[test]
fn measured_seconds_become_seconds_on_reference_cores() {
    let fabric = machine([2.0, 2.0, 1.0, 1.0]);
    let judged = |compute| choose("stay", &fabric, &[program(&[0, 1], 0.0, compute)])[0].judgement;
    assert!(near(judged(2.0).loss_now, -0.5) && near(judged(2.0).compute, 1.0));
    assert!(near(judged(1.0).loss_now, 1.0 / 1.5 - 1.0) && near(judged(1.0).compute, 2.0 / 3.0));
}

/// 100 turns of 5 ms are half of a second. A program that spends 7 % of its time in MPI loses no more than 7 %, and the
/// same correction applies to its predicted loss elsewhere. For a program that spends 80 %, the prediction is used as
/// it is.
#[test]
fn no_more_is_lost_than_is_spent_in_mpi() {
    let fabric = machine([1.0; 4]);
    let judged = |in_mpi, correction| {
        let one = Program { in_mpi, correction, ..program(&[0, 2], 100.0, 0.0) };
        choose("stay", &fabric, &[one])[0].judgement
    };
    let bounded = judged(Some(0.07), None);
    assert!(near(bounded.wan_now / (1.0 + bounded.loss_now), 0.07), "{bounded:?}");
    assert!(near(bounded.correction, 0.14));
    assert!(near(judged(Some(0.8), None).loss_now, 1.0) && near(judged(None, None).loss_now, 1.0));
    assert!(near(judged(Some(0.8), Some(0.5)).wan_now, 1.0 / 3.0));
}

/// One core is free on each fast host, and the fast hosts are on two sites. Two guests that compute all the time take
/// these cores. Two guests that wait for each other 200 times a second stay on the slow host that they share.
#[test]
fn who_computes_goes_to_the_fastest_hosts_and_who_communicates_stays_together() {
    let fabric = machine([1.0, 2.0, 1.0, 2.0]);
    let full = Program { barred: vec![0, 2], ..program(&[1, 1, 1, 3, 3, 3], 0.0, 0.0) };
    let chosen = |turns, compute| {
        let one = program(&[0, 0], turns, compute);
        let mut nodes = choose("predicted-time", &fabric, &[one, full.clone()])[0].nodes.clone();
        nodes.sort_unstable();
        nodes
    };
    assert_eq!(chosen(0.0, 1.0), [1, 3]);
    assert_eq!(chosen(200.0, 0.2), [0, 0]);
}

/// Where only one host is fast, a program that computes and one that hardly does change places.
#[test]
fn who_computes_less_gives_the_fast_host_away() {
    let fabric = machine([2.0, 1.0, 1.0, 1.0]);
    let busy = Program { sites: vec![0], ..program(&[1; 4], 0.0, 0.95) };
    let idle = Program { sites: vec![0], ..program(&[0; 4], 0.0, 0.05) };
    let chosen = choose("predicted-time", &fabric, &[busy, idle]);
    assert_eq!(
        (chosen[0].nodes.as_slice(), chosen[1].nodes.as_slice()),
        (&[0; 4][..], &[1; 4][..])
    );
    assert!(near(chosen[0].judgement.speed_then, 2.0) && near(chosen[0].judgement.speed_now, 1.0));
}

/// The rules of 2007: traffic alone gathers programs and ignores processors, and processors alone ignore traffic. The
/// whole rule gathers programs that communicate and gives the fastest hosts to those that compute.
#[test]
fn the_paper_gathers_one_kind_and_quickens_the_other() {
    let fabric = machine([1.0, 2.0, 1.0, 2.0]);
    let talks = program(&[0, 0, 2, 2], 100.0, 0.1);
    let talks = Program { cut: Cut { bytes: 1e6, ..talks.cut }, ..talks };
    let computes = program(&[0; 6], 0.0, 1.0);
    let computes = Program { nodes: vec![0, 0, 0, 2, 2, 2], ..computes };
    let speeds = |policy: &str| {
        let chosen = choose(policy, &fabric, &[talks.clone(), computes.clone()]);
        let site = |node: &u32| node / 2;
        let together = chosen[0].nodes.iter().all(|node| site(node) == site(&chosen[0].nodes[0]));
        (together, chosen[1].judgement.speed_then)
    };
    assert_eq!(speeds("inter-site-traffic"), (true, 1.0));
    assert_eq!(speeds("processors"), (false, 2.0));
    assert_eq!(speeds("paper"), (true, 2.0));
    assert_eq!(speeds("predicted-time"), (true, 2.0));
}

/// The fast hosts lack a feature. No guest goes there, under any policy, not even to make room.
#[test]
fn no_guest_goes_to_a_host_that_lacks_a_feature() {
    let fabric = machine([1.0, 2.0, 1.0, 2.0]);
    let one = Program { barred: vec![1, 3], ..program(&[0, 2], 100.0, 1.0) };
    let arrives = Program { barred: vec![1, 3], ..program(&[0, 0, 0, 0], 1.0, 1.0) };
    let arrives = Program { nodes: Vec::new(), ..arrives };
    for info in topolane_sites::SITE_POLICIES {
        for moved in choose(info.name, &fabric, &[one.clone(), arrives.clone()]) {
            assert!(moved.nodes.iter().all(|node| node % 2 == 0), "{} {moved:?}", info.name);
        }
    }
}

/// The storage is at site a. Two guests on b that each read 40 MB/s from it lose 0.8 s of each second of their run, and
/// move to a. With the storage at b they stay.
#[test]
fn traffic_to_storage_draws_a_program_home() {
    let fabric = machine([1.0; 4]);
    let reads = |home| Program { outside: 2e7, home: Some(home), ..program(&[2, 2], 0.0, 0.0) };
    let away = choose("predicted-time", &fabric, &[reads(0)]).remove(0);
    // The rate was measured in a run that loses 0.4 of every second, so the loss is 0.4 / 0.6.
    assert!(near(away.judgement.wan_now, 0.4 / 0.6), "{away:?}");
    assert!(away.nodes.iter().all(|node| *node < 2));
    assert_eq!(choose("predicted-time", &fabric, &[reads(1)])[0].judgement.moves, 0);
}

/// Programs of up to four guests, on any nodes with room, with any figures.
fn states() -> impl Strategy<Value = Vec<Program>> {
    let nodes = prop::collection::vec(0..4u32, 1..5);
    let one = (nodes, 0.0..150.0f64, 0.0..1.0f64, prop::option::of(0.0..1.0f64), 1.0..1e5f64);
    prop::collection::vec(one, 1..5).prop_map(|drawn| {
        let mut room = [4u32; 4];
        let mut programs = Vec::new();
        for (nodes, turns, compute, in_mpi, remaining) in drawn {
            let count = |node: u32| nodes.iter().filter(|&&at| at == node).count() as u32;
            if (0..4).all(|node| count(node) <= room[node as usize]) {
                (0..4).for_each(|node| room[node as usize] -= count(node));
                programs.push(Program { in_mpi, remaining, ..program(&nodes, turns, compute) });
            }
        }
        programs
    })
}

/// The guest-seconds that a choice saves, less what its moves must bring.
fn worth(programs: &[Program], chosen: &[MovedProgram], fastest: f64) -> f64 {
    let terms = Terms::default();
    let each = programs.iter().zip(chosen).map(|(program, moved)| {
        let judged = moved.judgement;
        let lost = (judged.loss_now - (judged.compute / fastest - judged.compute)).max(0.0);
        let share = terms.least + terms.doubt * lost;
        let least = if judged.moves > 0 { share * program.remaining } else { 0.0 };
        f64::from(program.guests) * (judged.gain - terms.margin * judged.cost - least)
    });
    each.sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Our rule never costs more than staying, and never saves less than the other rules.
    #[test]
    fn never_dearer_than_staying_or_than_another_rule(programs in states(), draw in [0..3usize, 0..3, 0..3, 0..3]) {
        let speeds = draw.map(|at| [1.0, 1.5, 2.0][at]);
        let fabric = machine(speeds);
        let fastest = speeds.into_iter().fold(0.0, f64::max);
        let of = |policy: &str| worth(&programs, &choose(policy, &fabric, &programs), fastest);
        let ours = of("predicted-time");
        prop_assert!(ours >= -1e-6, "{ours}");
        for other in ["inter-site-traffic", "paper", "processors"] {
            let theirs = of(other);
            prop_assert!(ours >= theirs - 1e-6 * theirs.abs().max(1.0), "{other}: {theirs}, ours {ours}");
        }
    }

    /// If all processors are reference cores, no choice depends on how much programs compute.
    #[test]
    fn equal_processors_change_nothing(programs in states()) {
        let fabric = machine([1.0; 4]);
        let plain: Vec<Program> =
            programs.iter().map(|one| Program { compute: 0.0, ..one.clone() }).collect();
        let (with, without) =
            (choose("predicted-time", &fabric, &programs), choose("predicted-time", &fabric, &plain));
        for (one, other) in with.iter().zip(&without) {
            prop_assert_eq!(&one.nodes, &other.nodes);
            prop_assert!(near(one.judgement.loss_now, other.judgement.loss_now));
        }
    }

    /// The predicted share of a second that the WAN takes is at most the share spent in MPI.
    #[test]
    fn the_wan_takes_no_more_than_mpi(programs in states()) {
        // If less than a twentieth of a second would be left, the prediction is capped, so its loss is not a share of
        // that second.
        for (one, moved) in programs.iter().zip(choose("stay", &machine([1.0; 4]), &programs)) {
            let judged = moved.judgement;
            if let Some(in_mpi) = one.in_mpi.filter(|share| *share < 0.95) {
                prop_assert!(judged.wan_now <= in_mpi * (1.0 + judged.loss_now) + 1e-9, "{:?}", judged);
            }
        }
    }

    /// If every host becomes faster, no program takes longer where it is.
    #[test]
    fn faster_hosts_never_make_a_program_slower(programs in states(), factor in 1.0..4.0f64) {
        // The figures as measured on reference cores, seen from cores that are all faster by one factor.
        let arriving: Vec<Program> =
            programs.iter().map(|one| Program { nodes: Vec::new(), ..one.clone() }).collect();
        let slow = choose("stay", &machine([1.0; 4]), &arriving);
        let fast = choose("stay", &machine([factor; 4]), &arriving);
        for (slow, fast) in slow.iter().zip(&fast) {
            prop_assert!(fast.judgement.loss_then <= slow.judgement.loss_then + 1e-9);
        }
    }
}
