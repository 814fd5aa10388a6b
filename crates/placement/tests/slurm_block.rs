//! Slurm's topology/block, with results computed by hand and properties of all answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashSet;
use std::sync::Arc;

use common::{rule, whole};
use proptest::prelude::*;
use topolane_fabric::{Description, DomainDescription, Fabric, pgft};
use topolane_placement::{Occupancy, Refusal, Request, Share};

/// A machine of one leaf whose consecutive domains have these numbers of nodes, followed by nodes in no domain.
fn racks(domains: &[u32], loose: u32, sizes: &[u32]) -> Arc<Fabric> {
    let nodes = domains.iter().sum::<u32>() + loose;
    let tree = pgft("n", &[nodes], &[1], &[1]);
    let names = Fabric::build(&tree).unwrap();
    let mut next = 0..nodes;
    let domain = |(index, &size): (usize, &u32)| DomainDescription {
        name: format!("rack{index}"),
        nodes: next.by_ref().take(size as usize).map(|n| names.node_name(n).to_owned()).collect(),
        bandwidth: 1e12,
    };
    let domains = domains.iter().enumerate().map(domain).collect();
    let machine = Description { domains, block_sizes: sizes.to_vec(), ..tree };
    Arc::new(Fabric::build(&machine).unwrap())
}

/// A state in which the first nodes of each domain are taken, so that these numbers are free.
fn with_free(fabric: &Arc<Fabric>, free: &[u32]) -> Occupancy {
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    for (domain, &free) in (0..).zip(free) {
        let nodes = fabric.domain_nodes(domain);
        let taken = &nodes[..nodes.len() - free as usize];
        if !taken.is_empty() {
            occupancy.claim(&whole(fabric, taken)).unwrap();
        }
    }
    occupancy
}

fn ask(nodes: u32, segment: Option<u32>, occupancy: &Occupancy) -> Result<Vec<u32>, Refusal> {
    let request = Request { segment, ..Request::whole_nodes(0, nodes, 1.0) };
    rule("slurm-block").place(&request, occupancy).map(|placed| placed.nodes().to_vec())
}

/// The number of nodes of an answer in each domain.
fn spread(nodes: u32, segment: Option<u32>, occupancy: &Occupancy) -> Vec<u32> {
    let fabric = occupancy.fabric();
    let placed = ask(nodes, segment, occupancy).unwrap();
    let mut counts = vec![0; fabric.domains() as usize];
    for &node in &placed {
        counts[fabric.domain(node).unwrap() as usize] += 1;
    }
    counts
}

/// A job that fits in a base block goes into the one with the fewest free nodes that suffice, among equals the last,
/// and takes its nodes of lowest index.
#[test]
fn the_tightest_base_block_and_of_equals_the_last() {
    let fabric = racks(&[4, 4, 4, 4], 0, &[4]);
    let occupancy = with_free(&fabric, &[4, 3, 2, 3]);
    assert_eq!(ask(2, None, &occupancy), Ok(vec![10, 11]));
    assert_eq!(ask(3, None, &occupancy), Ok(vec![13, 14, 15]));
    assert_eq!(ask(4, None, &occupancy), Ok(vec![0, 1, 2, 3]));
}

/// A job that needs two base blocks goes into a neighbouring pair, first and second or third and fourth, even if two
/// others would suffice. It takes the larger block of the pair, and the rest from the other.
#[test]
fn larger_blocks_are_base_blocks_side_by_side() {
    let fabric = racks(&[4, 4, 4, 4], 0, &[4, 8]);
    assert_eq!(spread(5, None, &with_free(&fabric, &[4, 2, 3, 2])), [0, 0, 3, 2]);
    assert_eq!(spread(5, None, &with_free(&fabric, &[2, 4, 4, 0])), [1, 4, 0, 0]);
    let parted = with_free(&fabric, &[2, 2, 4, 0]);
    assert_eq!(ask(5, None, &parted), Err(Refusal::NotNow { wanted: 5, free: 4 }));
}

/// With sizes of 4 and 16, a job of 6 may use two of the four base blocks, because two would suffice if they were
/// empty. More free nodes in three of them do not help.
#[test]
fn a_job_uses_no_more_inner_blocks_than_it_would_fill() {
    let fabric = racks(&[4, 4, 4, 4], 0, &[4, 16]);
    assert_eq!(spread(6, None, &with_free(&fabric, &[3, 2, 3, 1])), [3, 0, 3, 0]);
    let scraps = with_free(&fabric, &[2, 2, 2, 2]);
    assert_eq!(ask(6, None, &scraps), Err(Refusal::NotNow { wanted: 6, free: 4 }));
    assert_eq!(spread(8, None, &with_free(&fabric, &[4, 0, 1, 4])), [4, 0, 0, 4]);
}

/// Of the inner blocks that can hold the job, it takes the one with the fewest free nodes, and in it the tightest base
/// blocks. A job of 5 needs 8 of the 32 nodes and goes into one pair; of the pairs with 7, 5, 6 and 0 free nodes it
/// takes the second.
#[test]
fn the_tightest_inner_block_that_holds_the_job() {
    let fabric = racks(&[4; 8], 0, &[4, 8, 32]);
    assert_eq!(
        spread(5, None, &with_free(&fabric, &[4, 3, 2, 3, 3, 3, 0, 0])),
        [0, 0, 2, 3, 0, 0, 0, 0]
    );
    // A job of three base blocks needs a block of 32 here, with two pairs at most. 9 nodes take the pair with 7, then
    // the tightest pair that holds the other two, and there the base block with 2.
    let occupancy = with_free(&fabric, &[4, 3, 2, 3, 3, 3, 1, 0]);
    assert_eq!(spread(9, None, &occupancy), [4, 3, 2, 0, 0, 0, 0, 0]);
}

/// A base block without free nodes ranks next if its inner block is already used, and Slurm gives up there, although
/// the next inner block has enough nodes. 20 nodes take the inner block with 12 free nodes, then its fourth base block
/// is tried. If that has one free node, the job is placed.
#[test]
fn slurm_gives_up_at_an_empty_base_block() {
    let fabric = racks(&[4; 16], 0, &[4, 16, 64]);
    let free = |third, fourth| {
        let mut free = vec![4, 4, third, fourth, 4, 4, 0, 0];
        free.resize(16, 0);
        with_free(&fabric, &free)
    };
    assert_eq!(ask(20, None, &free(4, 0)), Err(Refusal::NotNow { wanted: 20, free: 12 }));
    assert_eq!(spread(20, None, &free(3, 1))[..8], [4, 4, 3, 1, 4, 4, 0, 0]);
}

/// A job wider than the largest block may use the whole machine. But an incomplete block of the largest size, at the
/// end of the machine, does not count: with three base blocks and blocks of two, a job of 10 gets nothing from the
/// third.
#[test]
fn above_the_largest_block_is_the_machine() {
    let fabric = racks(&[4, 4, 4, 4], 0, &[4, 8]);
    assert_eq!(spread(10, None, &with_free(&fabric, &[4, 2, 4, 1])), [4, 2, 4, 0]);
    let odd = with_free(&racks(&[4, 4, 4], 0, &[4, 8]), &[4, 4, 4]);
    assert_eq!(ask(10, None, &odd), Err(Refusal::NotNow { wanted: 10, free: 8 }));
    let never = rule("slurm-block").never(&Request::whole_nodes(0, 10, 1.0), &odd);
    assert_eq!(never, Some(Refusal::Never { wanted: 10, most: 8 }));
}

/// Each segment goes into the base block with the fewest free nodes that suffice. The job must be a multiple of the
/// segment, and the segment at most the base block size, even if blocks have spare nodes.
#[test]
fn each_segment_lies_in_one_base_block() {
    let fabric = racks(&[5, 5, 5, 5], 0, &[4]);
    assert_eq!(spread(6, Some(2), &with_free(&fabric, &[5, 3, 2, 1])), [2, 2, 2, 0]);
    assert_eq!(spread(8, Some(4), &with_free(&fabric, &[5, 3, 5, 5])), [0, 0, 4, 4]);
    let occupancy = with_free(&fabric, &[5, 3, 3, 3]);
    assert_eq!(ask(8, Some(4), &occupancy), Err(Refusal::NotNow { wanted: 8, free: 7 }));
    assert_eq!(ask(7, Some(3), &occupancy), Err(Refusal::Never { wanted: 7, most: 6 }));
    assert_eq!(ask(5, Some(5), &occupancy), Err(Refusal::Never { wanted: 5, most: 0 }));
    assert_eq!(ask(5, Some(0), &occupancy), Err(Refusal::Never { wanted: 5, most: 0 }));
}

/// Without configured sizes, the base block has the size of the smallest block, and blocks are 1, 2, 4, 8 and 16 of
/// them.
#[test]
fn sizes_that_are_not_named() {
    let fabric = racks(&[4; 8], 0, &[]);
    let named = racks(&[4; 8], 0, &[4, 8, 16, 32, 64]);
    for nodes in 1..=32 {
        let of = |fabric| ask(nodes, None, &with_free(fabric, &[4, 1, 3, 4, 4, 4, 4, 4]));
        assert_eq!(of(&fabric), of(&named), "{nodes} nodes");
    }
}

/// If no sizes are configured and a block is smaller than the first, which Slurm would not accept, the largest block is
/// the base.
#[test]
fn a_block_smaller_than_the_first_is_one_with_nodes_missing() {
    let free = [4, 2, 4, 1];
    let uneven = racks(&[4, 3, 4, 2], 0, &[]);
    assert_eq!(spread(3, None, &with_free(&uneven, &free)), [0, 0, 3, 0]);
    assert_eq!(spread(6, Some(2), &with_free(&uneven, &free)), [0, 2, 4, 0]);
    assert_eq!(spread(8, Some(4), &with_free(&uneven, &free)), [4, 0, 4, 0]);
}

/// A request for several slots per node goes into the tightest base block that can hold it, otherwise anywhere; Slurm
/// has no such requests.
#[test]
fn stacked_slots_lie_in_one_block_if_one_holds_them() {
    let occupancy = with_free(&racks(&[2, 2, 2], 0, &[2]), &[2, 1, 1]);
    let ask = |nodes| {
        let share = Share::part(8, 0);
        let request = Request { share, stacked: true, ..Request::whole_nodes(0, nodes, 1.0) };
        rule("slurm-block").place(&request, &occupancy).map(|placed| placed.nodes().to_vec())
    };
    let cores = occupancy.fabric().kind(0).cores();
    assert_eq!(cores, 16, "two slots a node");
    assert_eq!(ask(2), Ok(vec![5, 5]));
    assert_eq!(ask(4), Ok(vec![0, 0, 1, 1]));
    assert_eq!(ask(7).map(|nodes| nodes.len()), Ok(7));
}

/// Without domains, the leaves are the base blocks.
#[test]
fn leaves_are_blocks_where_there_are_no_domains() {
    let mut occupancy = Occupancy::new(common::tree(&[3, 4]));
    let fabric = Arc::clone(occupancy.fabric());
    occupancy.claim(&whole(&fabric, &[0, 3, 9])).unwrap();
    assert_eq!(ask(2, None, &occupancy), Ok(vec![10, 11]));
    assert_eq!(ask(6, Some(3), &occupancy), Err(Refusal::NotNow { wanted: 6, free: 5 }));
}

/// Nodes in no domain are used only if no node of a domain is free, in runs of consecutive nodes: the shortest run that
/// holds what is left, otherwise the longest, among equals the first.
#[test]
fn nodes_outside_of_blocks_come_last() {
    let fabric = racks(&[4, 4], 9, &[4]);
    let refused = Err(Refusal::NotNow { wanted: 2, free: 1 });
    assert_eq!(ask(2, None, &with_free(&fabric, &[0, 1])), refused);
    let mut occupancy = with_free(&fabric, &[0, 0]);
    occupancy.claim(&whole(&fabric, &[10, 14])).unwrap();
    // The free nodes are 8 and 9, 11 to 13, 15 and 16.
    assert_eq!(ask(2, None, &occupancy), Ok(vec![8, 9]));
    assert_eq!(ask(3, None, &occupancy), Ok(vec![11, 12, 13]));
    assert_eq!(ask(6, None, &occupancy), Ok(vec![8, 9, 11, 12, 13, 15]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any free nodes: nodes of one segment lie in one domain, a job without segments lies in one block of the
    /// smallest size that could hold it, and no job uses nodes outside the domains while one inside is free.
    #[test]
    fn jobs_lie_in_blocks(
        (spare, free) in (0u32..3).prop_flat_map(|spare| (Just(spare), prop::collection::vec(0..=4 + spare, 1..12))),
        with in prop::sample::subsequence(vec![8u32, 16, 32], 0..=3),
        wanted in 1u32..30,
        segment in prop::option::of(1u32..5),
    ) {
        let sizes: Vec<u32> = std::iter::once(4).chain(with).collect();
        let fabric = racks(&vec![4 + spare; free.len()], 2, &sizes);
        let occupancy = with_free(&fabric, &free);
        let Ok(nodes) = ask(wanted, segment, &occupancy) else { return Ok(()) };
        if free.iter().all(|&free| free == 0) {
            return Ok(());
        }
        let mut counts = vec![0u32; free.len()];
        for &node in &nodes {
            counts[fabric.domain(node).unwrap() as usize] += 1;
        }
        if let Some(segment) = segment {
            prop_assert!(counts.iter().all(|count| count % segment == 0), "{counts:?}");
        } else if let Some(&size) = sizes.iter().find(|&&size| size >= wanted) {
            let blocks = (0..).zip(&counts).filter(|&(_, &count)| count > 0).map(|(domain, _): (u32, _)| domain / (size / 4));
            prop_assert_eq!(blocks.collect::<HashSet<_>>().len(), 1, "{:?} in blocks of {}", counts, size);
        }
    }
}
