//! `kueue-tas` compared with recorded answers of Kueue's own code, and the promises of its rule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/kueue_states.rs"]
mod kueue_states;

use kueue_states::{State, Tree};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use topolane_placement::Within;

/// States with the answers of Kueue 0.15.2: `make bench BENCH="kueue --record 400 --seed 7"`.
const RECORDED: &str = include_str!("data/kueue-0.15.2.txt");

/// Every recorded state gets Kueue's answer in three forms: with counts of free slots, on whole nodes some of which
/// other jobs hold, and with domains as the lowest groups.
#[test]
fn recorded_answers_of_kueue() {
    let mut placed = 0;
    for line in RECORDED.lines() {
        let (state, kueue) = line.rsplit_once(' ').unwrap();
        let state = State::parse(state);
        assert_eq!(state.answer(false), kueue, "{state}");
        assert_eq!(state.answer(true), kueue, "domains for leaves: {state}");
        if let Some(answer) = state.answer_of_whole_nodes() {
            assert_eq!(answer, kueue, "whole nodes: {state}");
        }
        placed += usize::from(kueue != "-");
    }
    assert!(placed > 100, "{placed} are placed");
}

fn answer(line: &str) -> String {
    State::parse(line).answer(false)
}

/// A request goes to the group with the fewest free slots that can hold it, among equals the first. If there is none,
/// it goes to the lowest group above that can hold it.
#[test]
fn the_tightest_group_that_holds_it() {
    assert_eq!(answer("mixed preferred:1 - 2 [[2,2],[1,2],[0,3]]"), "3:2");
    assert_eq!(answer("mixed preferred:1 - 3 [[[1,1],[1,1]],[[2],[1]]]"), "4:2,5:1");
}

/// A request that requires a level is refused if no group of it can hold the request; one that only prefers the level
/// is not.
#[test]
fn required_or_preferred() {
    assert_eq!(answer("mixed required:1 - 3 [[1,1],[1,1]]"), "-");
    assert_eq!(answer("mixed preferred:1 - 3 [[1,1],[1,1]]"), "0:1,1:1,2:1");
    assert_eq!(answer("mixed required:1 - 2 [[1,0],[1,1]]"), "2:1,3:1");
}

/// Without a level, the default profile and `least-free` begin with the nodes that have the fewest free slots,
/// `best-fit` with those that have most.
#[test]
fn nodes_by_profile_without_a_level() {
    assert_eq!(answer("mixed anywhere - 5 [[4,1],[2,4]]"), "0:2,1:1,2:2");
    assert_eq!(answer("least-free anywhere - 5 [[4,1],[2,4]]"), "0:2,1:1,2:2");
    assert_eq!(answer("best-fit anywhere - 5 [[4,1],[2,4]]"), "0:4,1:1");
}

/// A slice lies in one group of its level. Two leaves with three free nodes hold one slice of two each, not a third.
#[test]
fn slices_are_whole() {
    assert_eq!(answer("mixed anywhere 2:1 4 [[1,1,1],[1,1,1]]"), "0:1,1:1,3:1,4:1");
    assert_eq!(answer("mixed anywhere 2:1 6 [[1,1,1],[1,1,1]]"), "-");
    assert_eq!(answer("mixed required:1 2:1 4 [[1,1,1],[1,1,1,1]]"), "3:1,4:1,5:1,6:1");
}

/// The last slice of a request may be smaller. Kueue does not place such pods.
#[test]
fn a_smaller_slice_at_the_end() {
    assert_eq!(answer("mixed anywhere 2:1 3 [[1,1,1],[1,1,1]]"), "0:1,1:1,3:1");
}

/// As in Kueue, a request is refused if the level of slices is above its own, or if a level does not exist.
#[test]
fn levels_that_cannot_be() {
    assert_eq!(answer("mixed required:1 2:2 2 [[[1,1]],[[1,1]]]"), "-");
    assert_eq!(answer("mixed required:7 - 1 [[1,1],[1,1]]"), "-");
}

fn groups_at(
    tree: &Tree,
    level: usize,
    first: &mut u32,
    found: &mut Vec<std::ops::Range<u32>>,
) -> usize {
    let begin = *first;
    let height = match tree {
        Tree::Node(_) => {
            *first += 1;
            0
        }
        Tree::Group(children) => {
            let heights = children.iter().map(|child| groups_at(child, level, first, found));
            1 + heights.max().unwrap_or(0)
        }
    };
    if height == level {
        found.push(begin..*first);
    }
    height
}

/// The number of slots given inside each group of a level.
fn by_group(state: &State, level: u8, answer: &str) -> Vec<u32> {
    let mut groups = Vec::new();
    groups_at(&state.tree, level.into(), &mut 0, &mut groups);
    let mut given = vec![0; groups.len()];
    for pair in answer.split(',') {
        let (node, slots) = pair.split_once(':').unwrap();
        let node: u32 = node.parse().unwrap();
        let at = groups.iter().position(|group| group.contains(&node)).unwrap();
        given[at] += slots.parse::<u32>().unwrap();
    }
    given
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A placed request has all its slots. If it requires a level, it lies in one group of it. Every group of the level
    /// of slices has whole slices. Without slices, a request that requires nothing is placed exactly if there are
    /// enough slots.
    #[test]
    fn what_kueue_promises(seed in any::<u64>()) {
        let state = State::random(&mut ChaCha8Rng::seed_from_u64(seed));
        let answer = state.answer(false);
        let total: u32 = state.tree.free().iter().sum();
        if answer == "-" {
            let may_be_refused = state.slice.is_some() || matches!(state.within, Within::Required(_));
            prop_assert!(may_be_refused || total < state.slots, "{state}");
            return Ok(());
        }
        prop_assert_eq!(by_group(&state, 0, &answer).iter().sum::<u32>(), state.slots);
        if let Within::Required(topolane_placement::Level::Tree(level)) = state.within {
            let used = by_group(&state, level, &answer).iter().filter(|given| **given > 0).count();
            prop_assert_eq!(used, 1, "{}", state);
        }
        if let Some((size, level)) = state.slice {
            for given in by_group(&state, level, &answer) {
                prop_assert_eq!(given % size.min(state.slots), 0, "{}", state);
            }
        }
    }
}
