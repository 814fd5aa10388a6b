//! Policies that give links find a partition whenever one exists, and no cable gets two owners.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/partitions.rs"]
mod partitions;
#[path = "common/reference.rs"]
mod reference;
#[path = "common/routing.rs"]
mod routing;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::seen;
use partitions::Tree;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::{CableId, Fabric, NodeIndex};
use topolane_placement::dedicated::{check, lend};
use topolane_placement::{Occupancy, Placement, Policy, Request, policy};

/// A machine, the jobs on it, and the failed cables.
struct Crowd {
    tree: Tree,
    fabric: Arc<Fabric>,
    occupancy: Occupancy,
    jobs: Vec<Placement>,
    failed: BTreeSet<CableId>,
}

impl Crowd {
    fn new(rng: &mut ChaCha8Rng) -> Self {
        let tree = Tree::random(rng);
        let fabric = tree.fabric();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let mut failed = BTreeSet::new();
        let many = if rng.random_bool(0.5) { 0 } else { rng.random_range(1..8) };
        for _ in 0..many {
            let cable = rng.random_range(0..fabric.links());
            occupancy.set_link_in_service(cable, false);
            failed.insert(cable);
        }
        Crowd { tree, fabric, occupancy, jobs: Vec::new(), failed }
    }

    /// Jobs arrive, most of them small, and some leave.
    fn live(&mut self, rule: &dyn Policy, phi: f64, rng: &mut ChaCha8Rng) {
        for id in 0..rng.random_range(0..12) {
            let most = if rng.random_bool(0.7) { 4 } else { self.fabric.nodes() };
            let wanted = rng.random_range(1..=most.min(self.fabric.nodes()));
            let request =
                Request { min_bandwidth: Some(phi), ..Request::whole_nodes(id, wanted, 1.0) };
            if let Ok(placement) = rule.place(&request, &self.occupancy) {
                self.occupancy.claim(&placement).unwrap();
                self.jobs.push(placement);
            }
            if rng.random_bool(0.4) && !self.jobs.is_empty() {
                let job = self.jobs.swap_remove(rng.random_range(0..self.jobs.len()));
                self.occupancy.release(&job);
            }
        }
    }

    /// Nodes with a link that no job holds, and cables that no job owns, computed from the placements alone.
    fn free(&self) -> (Vec<NodeIndex>, BTreeSet<CableId>) {
        let held = |node: &NodeIndex| self.jobs.iter().any(|job| job.nodes().contains(node));
        let owned = |cable: &CableId| self.jobs.iter().any(|job| job.links().contains(cable));
        let there = |cable: &CableId| self.fabric.has_cable(*cable) && !self.failed.contains(cable);
        let reached = |node: &NodeIndex| self.fabric.uplinks(0, *node).any(|cable| there(&cable));
        let nodes = (0..self.fabric.nodes()).filter(|node| !held(node) && reached(node)).collect();
        (nodes, (0..self.fabric.links()).filter(|cable| there(cable) && !owned(cable)).collect())
    }
}

/// The policies that give links, and `quiet-neighborhoods`, which gives all links of the groups that a job crosses.
fn rules() -> Vec<Box<dyn Policy>> {
    let names = ["dedicated", "jigsaw", "jigsaw-relaxed", "laas", "quiet-neighborhoods"];
    names.iter().map(|name| policy(name, 0).unwrap()).collect()
}

/// The cables that a job owns: those it names, or all uplinks of the groups that it crosses.
fn owned_by(fabric: &Fabric, job: &Placement) -> Vec<CableId> {
    if !job.links().is_empty() {
        return job.links().to_vec();
    }
    let below_top = |&&(level, _): &&(u8, u32)| usize::from(level) < fabric.depth();
    let uplinks = |&(level, group): &(u8, u32)| fabric.uplinks(level.into(), group);
    job.crossed().iter().filter(below_top).flat_map(uplinks).collect()
}

/// On tiny machines with jobs and with missing and failed cables, `dedicated` places a job of any size whenever some
/// choice of free nodes and cables meets (1) to (3). What it gives meets the condition.
#[test]
fn owned_finds_a_partition_wherever_there_is_one() {
    let rule = policy("dedicated", 0).unwrap();
    let (mut placed, mut refused, mut wrong) = (0, 0, Vec::new());
    for seed in 0..900 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut crowd = Crowd::new(&mut rng);
        let phi = [1.0, 1.0, 0.5][rng.random_range(0..3)];
        if crowd.fabric.nodes() > 18 {
            continue;
        }
        crowd.live(&*rule, phi, &mut rng);
        let (nodes, links) = crowd.free();
        let [leaf, pod] = crowd.tree.shares().map(|share| share * phi);
        for wanted in 1..=nodes.len() as u32 {
            let request =
                Request { min_bandwidth: Some(phi), ..Request::whole_nodes(99, wanted, 1.0) };
            let found = rule.place(&request, &crowd.occupancy);
            let there = reference::exists(&crowd.fabric, &nodes, &links, wanted, leaf, pod);
            if let Ok(job) = &found {
                let checked = check(&crowd.fabric, job.nodes(), job.links(), job.bandwidth_share());
                assert_eq!(checked, Ok(()), "seed {seed}: {:?} {job:?}", crowd.tree);
            }
            placed += u32::from(there);
            refused += u32::from(found.is_err());
            if there && found.is_err() {
                wrong.push(format!(
                    "seed {seed}, phi {phi}, {wanted} nodes: {:?} {nodes:?}",
                    crowd.tree
                ));
            }
        }
    }
    println!("{placed} {refused}");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(placed > 1_000 && refused > 200, "{placed} placed, {refused} refused");
}

/// The rule for the head of a queue only places jobs that `dedicated` can place, and not all of these. What it gives
/// meets the condition.
#[test]
fn the_rule_for_heads_gives_some_of_the_shapes() {
    let rule = policy("dedicated", 0).unwrap();
    let for_head = rule.for_head().unwrap().policy;
    let (mut by_both, mut passed_over) = (0, 0);
    for seed in 0..600 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut crowd = Crowd::new(&mut rng);
        let phi = [1.0, 1.0, 0.5][rng.random_range(0..3)];
        crowd.live(&*rule, phi, &mut rng);
        for wanted in 1..=crowd.occupancy.idle_nodes() {
            let request =
                Request { min_bandwidth: Some(phi), ..Request::whole_nodes(99, wanted, 1.0) };
            let by_any = rule.place(&request, &crowd.occupancy);
            match for_head.place(&request, &crowd.occupancy) {
                Ok(job) => {
                    let checked =
                        check(&crowd.fabric, job.nodes(), job.links(), job.bandwidth_share());
                    assert_eq!(checked, Ok(()), "seed {seed}: {:?} {job:?}", crowd.tree);
                    assert!(by_any.is_ok(), "seed {seed}: {:?} {job:?}", crowd.tree);
                    by_both += u32::from(!job.links().is_empty());
                }
                Err(_) => passed_over += u32::from(by_any.is_ok()),
            }
        }
    }
    assert!(by_both > 100 && passed_over > 20, "{by_both} by both, {passed_over} passed over");
}

/// For any arrivals and departures, under each policy that gives links: every placement meets the condition for its
/// share, which is at least what was requested; no cable has two owners, is missing or has failed.
/// (`quiet-neighborhoods` does not look at cables, so it is tested on complete machines.)
#[test]
fn every_placement_meets_the_condition_and_no_cable_has_two_owners() {
    for rule in rules() {
        let mut over_leaves = 0;
        for seed in 0..300 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut crowd = Crowd::new(&mut rng);
            let phi = [1.0, 0.7, 0.5][rng.random_range(0..3)];
            if rule.name() == "quiet-neighborhoods"
                && !(crowd.failed.is_empty() && crowd.tree.missing.is_empty())
            {
                continue;
            }
            crowd.live(&*rule, phi, &mut rng);
            let mut owned = BTreeSet::new();
            for job in &crowd.jobs {
                let context = || format!("{}: seed {seed} {:?} {job:?}", rule.name(), crowd.tree);
                assert!(job.bandwidth_share() >= phi - 1e-9, "{}", context());
                let links = owned_by(&crowd.fabric, job);
                let checked = check(&crowd.fabric, job.nodes(), &links, job.bandwidth_share());
                assert_eq!(checked, Ok(()), "{}", context());
                for &link in &links {
                    assert!(owned.insert(link), "cable {link} has two owners: {}", context());
                    assert!(crowd.fabric.has_cable(link) && !crowd.failed.contains(&link));
                }
                over_leaves += u32::from(!links.is_empty());
            }
        }
        assert!(over_leaves > 25, "{}: {over_leaves}", rule.name());
    }
}

/// A claim and its release cancel out, including links: nodes and free slots are as before.
#[test]
fn claim_and_release_are_inverses() {
    let slots = |occupancy: &Occupancy| {
        let fabric = occupancy.fabric();
        let of_group = |level: usize, group: u32| {
            let width = fabric.width(0, level);
            (0..width)
                .map(move |switch| occupancy.free_uplink_slots(level, group, switch))
                .collect::<Vec<_>>()
        };
        (1..fabric.depth())
            .flat_map(|level| (0..fabric.groups(level)).map(move |group| of_group(level, group)))
            .collect::<Vec<_>>()
    };
    for rule in rules() {
        let mut changed = 0;
        for seed in 0..300 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut crowd = Crowd::new(&mut rng);
            crowd.live(&*rule, 1.0, &mut rng);
            let wanted = rng.random_range(1..=crowd.fabric.nodes());
            let Ok(placement) =
                rule.place(&Request::whole_nodes(99, wanted, 1.0), &crowd.occupancy)
            else {
                continue;
            };
            let before = (seen(&crowd.occupancy), slots(&crowd.occupancy));
            crowd.occupancy.claim(&placement).unwrap();
            changed += u32::from(slots(&crowd.occupancy) != before.1);
            assert!(crowd.occupancy.claim(&placement).is_err());
            crowd.occupancy.release(&placement);
            assert!(
                (seen(&crowd.occupancy), slots(&crowd.occupancy)) == before,
                "{}: {seed}",
                rule.name()
            );
        }
        assert!(changed > 30, "{}: {changed}", rule.name());
    }
}

/// Lends links to jobs that were placed while many links had failed. Lent links are free, none is lent twice, and with
/// them a job meets the condition for its new share.
#[test]
fn what_is_lent_gives_the_share_that_it_says() {
    let rule = policy("dedicated", 0).unwrap();
    let mut more = 0;
    for seed in 0..2_500 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut crowd = Crowd::new(&mut rng);
        let all = 0..crowd.fabric.links();
        let out: Vec<CableId> = all.filter(|_| rng.random_bool(0.4)).collect();
        for &cable in &out {
            crowd.occupancy.set_link_in_service(cable, false);
        }
        crowd.live(&*rule, 0.5, &mut rng);
        for &cable in out.iter().filter(|cable| !crowd.failed.contains(cable)) {
            crowd.occupancy.set_link_in_service(cable, true);
        }
        let (_, mut free) = crowd.free();
        let jobs: Vec<Arc<Placement>> = crowd.jobs.iter().cloned().map(Arc::new).collect();
        let running = jobs.iter().enumerate().map(|(id, job)| (id as u64, job));
        for lent in lend(&crowd.occupancy, running) {
            let job = &jobs[lent.id as usize];
            for link in &lent.links {
                assert!(free.remove(link), "seed {seed}: cable {link} is not free: {lent:?}");
            }
            let links = [job.links(), &lent.links].concat();
            let checked = check(&crowd.fabric, job.nodes(), &links, lent.bandwidth_share);
            assert_eq!(checked, Ok(()), "seed {seed} {:?} {job:?} {lent:?}", crowd.tree);
            more += u32::from(lent.bandwidth_share > job.bandwidth_share());
        }
    }
    assert!(more > 50, "{more}");
}
