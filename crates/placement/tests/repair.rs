//! Room made by moving jobs that run.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, fat_tree};
use topolane_placement::{Movable, Occupancy, Placement, Repair, Request, policy, repair};

/// 16 leaves of 4 nodes in 4 pods, as many uplinks as nodes everywhere.
fn machine() -> Arc<Fabric> {
    Arc::new(Fabric::build(&fat_tree(8, 4).unwrap()).unwrap())
}

/// Jobs that came and, where the flag is not set, went.
fn filled(occupancy: &mut Occupancy, jobs: &[(u32, bool)]) -> Vec<(Request, Arc<Placement>)> {
    let owned = policy("dedicated", 0).unwrap();
    let mut running = Vec::new();
    for (id, &(nodes, stays)) in (0..).zip(jobs) {
        let request = Request::whole_nodes(id, nodes, 1.0);
        if let Ok(placement) = owned.place(&request, occupancy) {
            let placement = Arc::new(placement);
            occupancy.claim(&placement).unwrap();
            running.push((request, placement, stays));
        }
    }
    for (_, placement, _) in running.iter().filter(|job| !job.2) {
        occupancy.release(placement);
    }
    running
        .into_iter()
        .filter(|job| job.2)
        .map(|(request, placement, _)| (request, placement))
        .collect()
}

fn state(occupancy: &Occupancy) -> (Vec<u32>, Vec<u64>) {
    let leaves = 0..occupancy.fabric().groups(1);
    let slots = leaves.map(|leaf| occupancy.free_uplink_slots(1, leaf, 0)).collect();
    (occupancy.idle().iter().collect(), slots)
}

proptest! {
    /// A repair moves no more jobs than it may, none as large as the request, each onto as many nodes as it had; when
    /// all of them have left their places, their new ones and the request's can all be claimed. Looking for it
    /// changes nothing.
    #[test]
    fn all_fit_after_the_moves(
        jobs in prop::collection::vec((1u32..9, prop::bool::weighted(0.8)), 20..60),
        wanted in 5u32..24,
        most in 1usize..4,
    ) {
        let mut occupancy = Occupancy::new(machine());
        let running = filled(&mut occupancy, &jobs);
        let owned = policy("dedicated", 0).unwrap();
        let request = Request::whole_nodes(1_000, wanted, 1.0);
        prop_assume!(owned.place(&request, &occupancy).is_err());
        let movable: Vec<Movable<'_>> =
            running.iter().map(|(request, placement)| Movable { request, placement }).collect();
        let before = state(&occupancy);
        let found = repair(&*owned, &request, &mut occupancy, &movable, most);
        prop_assert_eq!(state(&occupancy), before);
        if let Some(Repair { moved, placement }) = found {
            prop_assert!(!moved.is_empty() && moved.len() <= most);
            prop_assert_eq!(placement.nodes().len(), wanted as usize);
            for (id, _) in &moved {
                let (_, old) = running.iter().find(|(request, _)| request.id == *id).unwrap();
                prop_assert!(old.nodes().len() < wanted as usize);
                occupancy.release(old);
            }
            for (id, new) in &moved {
                let (_, old) = running.iter().find(|(request, _)| request.id == *id).unwrap();
                prop_assert_eq!(new.nodes().len(), old.nodes().len());
                occupancy.claim(new).unwrap();
            }
            occupancy.claim(&placement).unwrap();
        }
    }
}

/// Two pods of two leaves of two nodes. A job in each has a node on both leaves, one with the first uplink of each leaf, the
/// other with the second: what is free has no uplink in common, and four nodes go nowhere. Moved beside the other,
/// either job leaves its pod to them.
#[test]
fn one_move_makes_room() {
    let fabric = Arc::new(Fabric::build(&fat_tree(4, 2).unwrap()).unwrap());
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let owned = policy("dedicated", 0).unwrap();
    let running: Vec<(Request, Arc<Placement>)> = [(0, 0), (1, 1)]
        .into_iter()
        .map(|(pod, slot)| {
            let request = Request::whole_nodes(u64::from(pod), 2, 1.0);
            let nodes = vec![4 * pod, 4 * pod + 2];
            let uplink = |leaf| fabric.cable(1, leaf, 0, slot, 0).unwrap();
            let links = vec![uplink(2 * pod), uplink(2 * pod + 1)];
            let placement = Placement::new(&fabric, nodes, request.share.clone()).isolated(true);
            let placement = Arc::new(placement.with_links(links, 1.0));
            occupancy.claim(&placement).unwrap();
            (request, placement)
        })
        .collect();
    let request = Request::whole_nodes(9, 4, 1.0);
    let movable: Vec<Movable<'_>> =
        running.iter().map(|(request, placement)| Movable { request, placement }).collect();
    assert!(owned.place(&request, &occupancy).is_err());
    assert_eq!(repair(&*owned, &request, &mut occupancy, &movable, 0), None);
    let found = repair(&*owned, &request, &mut occupancy, &movable, 1).unwrap();
    assert_eq!(found.moved.len(), 1);
    let pods: Vec<u32> =
        found.placement.nodes().iter().map(|&node| fabric.group(2, node)).collect();
    assert!(pods.iter().all(|&pod| u64::from(pod) == found.moved[0].0));
}
