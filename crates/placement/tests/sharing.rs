//! Which links running jobs share.
#![allow(clippy::unwrap_used)]

mod common;

use topolane_placement::{LinkUse, Placement, Share};

/// Two jobs that span two sites share the uplinks of the leaves that both cross. The links between the sites are no
/// uplinks and do not count.
#[test]
fn jobs_that_span_sites_share_uplinks_inside_them() {
    let sites = [vec![(vec![4], true), (vec![4], true)], vec![(vec![4], true)]];
    let fabric = common::build(&sites, true);
    let on = |nodes: [u32; 2]| Placement::new(&fabric, nodes.to_vec(), Share::Whole);
    let (one, other, apart) = (on([0, 8]), on([1, 9]), on([4, 5]));
    let jobs = [(1, &one), (2, &other), (3, &apart)];
    let leaves = fabric.present_uplinks(1, 0) + fabric.present_uplinks(1, 2);
    assert_eq!(LinkUse::of(&fabric, &jobs).shared(), leaves);
    assert_eq!(LinkUse::of(&fabric, &jobs[1..]).shared(), 0);
}
