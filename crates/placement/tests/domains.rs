//! Nodes of one domain use no link of the tree: hops, crossings, isolation and traffic take this into account.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{DomainDescription, Fabric, NodeIndex, ROUTINGS, pgft};
use topolane_placement::{Occupancy, Placement, Quality, Request, Share, policy};

/// PGFT([3, 2, 2]) with 12 nodes n1 to n12, and domains of the given nodes.
fn machine(domains: &[&[u32]]) -> Arc<Fabric> {
    let mut machine = pgft("n", &[3, 2, 2], &[1, 2, 2], &[1, 1, 1]);
    machine.domains = domains
        .iter()
        .zip(0..)
        .map(|(nodes, index): (_, u32)| DomainDescription {
            name: format!("domain{index}"),
            nodes: nodes.iter().map(|node| format!("n{node}")).collect(),
            bandwidth: 3.6e12,
        })
        .collect();
    Arc::new(Fabric::build(&machine).unwrap())
}

/// A machine on which every node is in one of some domains, or in none.
fn any_machine() -> impl Strategy<Value = Arc<Fabric>> {
    prop::collection::vec(0usize..4, 12).prop_map(|domain_of| {
        let nodes = |domain| (1..=12).zip(&domain_of).filter(move |(_, of)| **of == domain);
        let domains: Vec<Vec<u32>> =
            (0..3).map(|domain| nodes(domain).map(|(node, _)| node).collect()).collect();
        let domains: Vec<&[u32]> =
            domains.iter().map(Vec::as_slice).filter(|nodes| !nodes.is_empty()).collect();
        machine(&domains)
    })
}

fn whole(fabric: &Fabric, nodes: &[NodeIndex]) -> Placement {
    Placement::new(fabric, nodes.to_vec(), Share::Whole)
}

#[test]
fn a_job_in_one_domain_crosses_nothing() {
    let fabric = machine(&[&[1, 4, 7], &[2, 5]]);
    let inside = whole(&fabric, &[0, 3, 6]);
    assert!(inside.crossed().is_empty() && !inside.spans_nodes());
    assert!((0..fabric.links()).all(|cable| !inside.may_use(&fabric, cable)));
    assert!(Quality::of(&fabric, inside.nodes()).aph.abs() < 1e-9);
    // A job over two domains crosses the same groups as without domains.
    let across = whole(&fabric, &[0, 1, 3]);
    assert_eq!(across.crossed(), whole(&machine(&[]), &[0, 1, 3]).crossed());
    assert!(across.spans_nodes());
    let hops = Quality::of(&fabric, across.nodes()).pair_hops;
    assert!(
        (hops - 2.0).abs() < 1e-9,
        "{hops}: n2 and n4; n1 and n2 share a leaf, n1 and n4 a domain"
    );
}

#[test]
fn a_job_that_fits_in_a_domain_conflicts_with_none() {
    // A job over the leaves 0 to 2 keeps other jobs from crossing them.
    let domains: &[&[u32]] = &[&[2, 5, 8, 11], &[3, 6]];
    let place = |fabric: &Arc<Fabric>, nodes| {
        let mut occupancy = Occupancy::new(Arc::clone(fabric));
        let wide = whole(fabric, &[0, 3, 6, 9]).isolated(true);
        occupancy.claim(&wide).unwrap();
        let rule = policy("isolated", 0).unwrap();
        let request = Request::whole_nodes(2, nodes, 1.0);
        assert_eq!(
            rule.can_place(&request, &occupancy).is_ok(),
            rule.place(&request, &occupancy).is_ok()
        );
        rule.place(&request, &occupancy).ok().map(|placement| placement.nodes().to_vec())
    };
    assert_eq!(place(&machine(&[]), 4), None);
    assert_eq!(place(&machine(domains), 4), Some(vec![1, 4, 7, 10]), "the domain with room");
    assert_eq!(place(&machine(domains), 2), Some(vec![2, 5]), "the smaller one, which it fills");
    assert_eq!(place(&machine(domains), 5), None);
}

#[test]
fn domains_on_one_leaf_each_change_no_placement() {
    let (with, without) =
        (machine(&[&[1, 2, 3], &[4, 5, 6], &[7, 8], &[10, 11, 12]]), machine(&[]));
    for rule in ["isolated", "dedicated", "slurm-tree", "hop-bytes-exact"] {
        for nodes in 1..=12 {
            let placed = |fabric: &Arc<Fabric>| {
                let occupancy = Occupancy::new(Arc::clone(fabric));
                let placed = policy(rule, 0)
                    .unwrap()
                    .place(&Request::whole_nodes(1, nodes, 1.0), &occupancy);
                placed.ok().map(|job| (job.nodes().to_vec(), job.crossed().to_vec()))
            };
            assert_eq!(placed(&with), placed(&without), "{rule}, {nodes} nodes");
        }
    }
}

proptest! {
    /// Hop measures are sums over pairs, with 0 for pairs in one domain.
    #[test]
    fn quality_is_the_sum_over_pairs(
        fabric in any_machine(),
        picks in prop::collection::vec(any::<Index>(), 1..10),
    ) {
        let nodes: Vec<NodeIndex> = picks.iter().map(|pick| pick.index(12) as u32).collect();
        let mut sum = 0.0;
        for (index, &a) in nodes.iter().enumerate() {
            for &b in &nodes[..index] {
                sum += f64::from(fabric.hops(a, b).unwrap());
            }
        }
        prop_assert!((Quality::of(&fabric, &nodes).pair_hops - sum).abs() < 1e-9);
    }

    /// For any routing, a job only uses links of its nodes and of the groups that it crosses.
    #[test]
    fn routes_stay_within_what_a_job_may_use(
        fabric in any_machine(),
        picks in prop::collection::vec(any::<Index>(), 1..6),
    ) {
        let nodes: Vec<NodeIndex> = picks.iter().map(|pick| pick.index(12) as u32).collect();
        let job = whole(&fabric, &nodes);
        for info in ROUTINGS.iter().filter(|info| info.wirings.contains(&"tree")) {
            let routing = topolane_fabric::routing(info.name, &fabric, 1).unwrap();
            for (&from, &to) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
                let mut path = Vec::new();
                routing.path(from, to, &mut path).unwrap();
                prop_assert_eq!(path.is_empty(), from == to || fabric.share_domain(from, to));
                for link in path.iter().flat_map(|&channel| routing.links(channel)) {
                    prop_assert!(job.may_use(&fabric, link.cable), "{} for {:?}", link.cable, nodes);
                }
            }
        }
    }

    /// Jobs placed by `isolated` share no link, for any domains.
    #[test]
    fn isolated_jobs_share_no_link(
        fabric in any_machine(),
        sizes in prop::collection::vec(1u32..7, 1..8),
    ) {
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let mut used = HashSet::new();
        for (id, nodes) in (0..).zip(sizes) {
            let placed = policy("isolated", 0).unwrap().place(&Request::whole_nodes(id, nodes, 1.0), &occupancy);
            let Ok(job) = placed else { continue };
            occupancy.claim(&job).unwrap();
            for cable in (0..fabric.links()).filter(|&cable| job.may_use(&fabric, cable)) {
                prop_assert!(used.insert(cable), "{} is of two jobs", cable);
            }
        }
    }
}
