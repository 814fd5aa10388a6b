//! Speed-ups stay in their bins, use every bin, and depend only on the job and the seed.

#![allow(clippy::float_cmp)] // The values compared are exact.

use proptest::prelude::*;
use topolane_simulator::Scenario;

const JOBS: std::ops::Range<u64> = 0..3_000;

/// The gains of many jobs of one width in per cent, sorted and without repeats.
fn gains(scenario: Scenario, nodes: u32) -> Vec<f64> {
    let mut gains: Vec<f64> =
        JOBS.map(|id| (scenario.speed_up(id, nodes, 1) * 1e6).round() / 1e4).collect();
    gains.sort_by(f64::total_cmp);
    gains.dedup();
    gains
}

#[test]
fn names_are_read_and_written() {
    let cases = [
        ("none", Scenario::None),
        ("5", Scenario::Percent(5.0)),
        ("12.5%", Scenario::Percent(12.5)),
        ("0", Scenario::Percent(0.0)),
        ("v1", Scenario::V1),
        ("V2", Scenario::V2),
    ];
    for (name, scenario) in cases {
        assert_eq!(name.parse(), Ok(scenario));
        assert_eq!(scenario.to_string().parse(), Ok(scenario));
    }
    for wrong in ["", "100", "-1", "nan", "inf", "v3", "5 %x"] {
        assert!(wrong.parse::<Scenario>().is_err(), "{wrong}");
    }
}

#[test]
fn a_percentage_is_for_jobs_over_four_nodes() {
    assert_eq!(gains(Scenario::Percent(20.0), 4), [0.0]);
    assert_eq!(gains(Scenario::Percent(20.0), 5), [20.0]);
    assert_eq!(gains(Scenario::None, 512), [0.0]);
}

#[test]
fn a_job_of_512_nodes_or_more_is_at_the_top_of_its_bin() {
    for nodes in [512, 513, 4_096] {
        assert_eq!(gains(Scenario::V1, nodes), [10.0, 20.0, 30.0]);
        // The bins are 0-10, 10-20 and 10-30 %.
        assert_eq!(gains(Scenario::V2, nodes), [10.0, 20.0, 30.0]);
    }
}

#[test]
fn inside_a_bin_the_gain_is_linear_in_the_nodes() {
    // 256 nodes are 255/511 of the way from 1 node to 512.
    let half = 255.0 / 511.0 * 10.0;
    let close = |found: Vec<f64>, expected: [f64; 3]| {
        assert_eq!(found.len(), 3);
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-3, "{found:?}");
        }
    };
    close(gains(Scenario::V1, 256), [half, 2.0 * half, 3.0 * half]);
    close(gains(Scenario::V2, 256), [half, 10.0 + half, 10.0 + 2.0 * half]);
    assert_eq!(gains(Scenario::V1, 1), [0.0], "one node has no other node to talk to");
}

#[test]
fn v2_knows_two_classes_and_leaves_small_jobs_alone() {
    assert_eq!(gains(Scenario::V2, 4), [0.0]);
    assert_eq!(gains(Scenario::V2, 5).len(), 2);
    assert_eq!(gains(Scenario::V2, 128).len(), 2);
    assert_eq!(gains(Scenario::V2, 129).len(), 3);
}

#[test]
fn every_bin_is_as_likely() {
    let top = |scenario: Scenario| {
        let all = JOBS.filter(|&id| scenario.speed_up(id, 512, 7) > 0.25).count();
        all as f64 / JOBS.count() as f64
    };
    assert!((top(Scenario::V1) - 1.0 / 3.0).abs() < 0.03);
    assert!((top(Scenario::V2) - 1.0 / 3.0).abs() < 0.03);
}

proptest! {
    #[test]
    fn a_gain_is_a_part_of_the_run_time_and_the_same_every_time(
        id in any::<u64>(), nodes in any::<u32>(), seed in any::<u64>(),
    ) {
        for scenario in [Scenario::None, Scenario::Percent(20.0), Scenario::V1, Scenario::V2] {
            let gain = scenario.speed_up(id, nodes, seed);
            prop_assert!((0.0..=0.3).contains(&gain));
            prop_assert_eq!(gain, scenario.speed_up(id, nodes, seed));
        }
    }
}
