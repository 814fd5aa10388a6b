//! The policy `least-slowdown`, and the traffic counts that it reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{one_site, rule, tree};
use proptest::prelude::*;
use topolane_fabric::{Fabric, Fixed, Rule, pgft, preset, read, routing};
use topolane_placement::rank_k::{
    CoresPerNode, PredictionSetting, Profile, RankKRequest, best, rank_k,
};
use topolane_placement::{
    Amounts, GpuSet, JobTraffic, Occupancy, Placement, Policy, Request, Share,
};
use topolane_traffic::{Flows, Traffic, TrafficEntry, contention, pattern};

const PATTERNS: [&str; 4] = ["pairs", "ring", "alltoall", "stencil4d"];

/// An empty machine that tracks traffic.
fn network(fabric: &Arc<Fabric>) -> Occupancy {
    let routing = routing("default", fabric, 0).unwrap();
    Occupancy::new(Arc::clone(fabric)).with_network(routing.into())
}

/// Trees and dragonflies, with groups joined all to all.
fn fabrics() -> impl Strategy<Value = Arc<Fabric>> {
    let dragonfly = |name: &str| Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap());
    let dragonflies = prop::sample::select(vec![
        dragonfly("slingshot(nodes=24, groups=3, switches=4, cables=1)"),
        dragonfly("slingshot(nodes=40, groups=4, switches=5, cables=2)"),
    ]);
    prop_oneof![3 => one_site().prop_map(|machine| machine.fabric()), 1 => dragonflies]
}

/// A job that communicates all the time, by one of the patterns.
fn job(id: u64, nodes: u32) -> Request {
    let traffic = pattern(PATTERNS[id as usize % 4]).unwrap().traffic(nodes, id).unwrap();
    let traffic = Some(JobTraffic::new(&Arc::new(traffic), 1.0));
    Request { traffic, ..Request::whole_nodes(id, nodes, 1.0) }
}

/// Places jobs by a policy that does not read traffic, and ends every third one.
fn crowded(
    fabric: &Arc<Fabric>,
    sizes: &[u32],
    policy: &dyn Policy,
) -> (Occupancy, Vec<Placement>) {
    let mut occupancy = network(fabric);
    let mut running = Vec::new();
    for (id, &size) in sizes.iter().enumerate() {
        if let Ok(placement) = policy.place(&job(id as u64, size), &occupancy) {
            occupancy.claim(&placement).unwrap();
            running.push(placement);
        }
        if id % 3 == 2 && !running.is_empty() {
            occupancy.release(&running.remove(id * 7 % running.len()));
        }
    }
    (occupancy, running)
}

fn sizes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1u32..12, 0..12)
}

/// Node-seconds that a job's flows lose to each other per second, on a dragonfly: its time without other jobs over the
/// time that the links of its nodes need.
fn lost_to_itself(fabric: &Arc<Fabric>, request: &Request, placement: &Placement) -> f64 {
    if fabric.wiring().is_tree() {
        return 0.0;
    }
    let routing = routing("default", fabric, 0).unwrap();
    let traffic = pattern(PATTERNS[request.id as usize % 4]).unwrap();
    let traffic = traffic.traffic(request.nodes, request.id).unwrap();
    let flows = Flows::new(&traffic, placement.nodes(), &*routing).unwrap();
    let of_nodes = |&&(channel, _): &&(u32, f64)| channel < 2 * fabric.nodes();
    let seconds = |&(channel, bytes): &(u32, f64)| bytes / routing.capacity(channel);
    let least = flows.per_channel().iter().filter(of_nodes).map(seconds).fold(0.0, f64::max);
    let mut model = contention("congestion", &*routing).unwrap();
    model.enter(1, Arc::new(flows));
    let time = model.time(1);
    if least > 0.0 { f64::from(request.nodes) * (time / least - 1.0) } else { 0.0 }
}

/// Node-seconds that all jobs lose per second, computed from scratch.
fn lost(fabric: &Arc<Fabric>, running: &[&Placement]) -> f64 {
    let mut occupancy = network(fabric);
    for placement in running {
        occupancy.adopt(placement).unwrap();
    }
    let slowdowns = occupancy.network().unwrap().slowdowns();
    let nodes = |id: u64| {
        let its = |one: &&&Placement| one.traffic().is_some_and(|traffic| traffic.job() == id);
        running.iter().find(its).unwrap().nodes().len() as f64
    };
    slowdowns.into_iter().map(|(id, slowdown)| nodes(id) * (slowdown - 1.0)).sum()
}

proptest! {
    /// After any claims and releases, the slowdowns equal those of a machine on which only the remaining jobs were
    /// placed.
    #[test]
    fn counting_as_jobs_come_and_go_is_counting_from_scratch(fabric in fabrics(), sizes in sizes()) {
        for name in ["random", "scattered", "least-slowdown"] {
            let (occupancy, running) = crowded(&fabric, &sizes, &*rule(name));
            let mut recounted = network(&fabric);
            for placement in &running {
                recounted.claim(placement).unwrap();
            }
            prop_assert_eq!(occupancy.network().unwrap().slowdowns(), recounted.network().unwrap().slowdowns());
        }
    }

    /// After trying something and undoing it, the slowdowns are as before.
    #[test]
    fn what_is_tried_leaves_nothing_behind(fabric in fabrics(), sizes in sizes()) {
        let (mut occupancy, running) = crowded(&fabric, &sizes, &*rule("random"));
        let before = occupancy.network().unwrap().slowdowns();
        {
            let mut tried = occupancy.what_if();
            for placement in &running {
                tried.release(Arc::new(placement.clone()));
            }
            prop_assert!(tried.network().unwrap().slowdowns().is_empty());
        }
        prop_assert_eq!(occupancy.network().unwrap().slowdowns(), before);
    }

    /// All jobs but one are placed by another policy. Placing the last one by this policy loses no more node-seconds
    /// than placing it by `slurm-tree`, `hop-bytes` or first fit, apart from the estimate for later jobs.
    #[test]
    fn it_loses_no_more_than_the_policies_among_its_candidates(
        fabric in fabrics(), sizes in sizes(), nodes in 2u32..12,
    ) {
        let (occupancy, running) = crowded(&fabric, &sizes, &*rule("scattered"));
        let request = job(1000, nodes);
        let lost_under = |name: &str| {
            let placement = rule(name).place(&request, &occupancy).ok()?;
            let together = lost(&fabric, &running.iter().chain([&placement]).collect::<Vec<_>>());
            Some(together + lost_to_itself(&fabric, &request, &placement))
        };
        if let Some(own) = lost_under("least-slowdown") {
            let guess = 0.0011 * f64::from(nodes) * fabric.depth() as f64;
            for other in ["slurm-tree", "hop-bytes", "first-fit"] {
                let theirs = lost_under(other).unwrap();
                prop_assert!(own <= theirs + guess + 1e-9, "{own} under it, {theirs} under {other}");
            }
        }
    }
}

/// Two pods of three leaves of four nodes. A job sends between leaves 0 and 1. An all-to-all job of five nodes needs
/// two leaves: first fit sends over the same links, this policy over others.
#[test]
fn jobs_are_kept_off_each_others_uplinks() {
    let fabric = tree(&[4, 3, 2]);
    let mut occupancy = network(&fabric);
    let held = Placement::new(&fabric, vec![0, 4], Share::Whole);
    let traffic = occupancy.lay(&job(1, 2), &held);
    let held = held.with_traffic(traffic);
    occupancy.claim(&held).unwrap();
    let next = job(6, 5);
    let lost_under = |name| {
        let placed = rule(name).place(&next, &occupancy).unwrap();
        lost(&fabric, &[&held, &placed])
    };
    assert!(lost_under("first-fit") > 0.0, "first fit shares a link");
    assert!(lost_under("least-slowdown") <= 0.0);
}

/// A job of `nodes` nodes in which two ranks send to each other all the time.
fn exchange(id: u64, nodes: u32, (one, other): (u32, u32)) -> Request {
    let entry = |from, to| TrafficEntry { from, to, bytes: 1e9, messages: 1.0 };
    let traffic = Traffic::new(nodes, [entry(one, other), entry(other, one)]).unwrap();
    let traffic = Some(JobTraffic::new(&Arc::new(traffic), 1.0));
    Request { traffic, ..Request::whole_nodes(id, nodes, 1.0) }
}

/// The same job, but it communicates only for a part of its time.
fn for_part_of_its_time(request: Request, communication: f64) -> Request {
    let nodes = request.nodes;
    let traffic = pattern("alltoall").unwrap().traffic(nodes, 0).unwrap();
    Request { traffic: Some(JobTraffic::new(&Arc::new(traffic), communication)), ..request }
}

fn hold(occupancy: &mut Occupancy, request: &Request, nodes: Vec<u32>) -> Placement {
    let held = Placement::new(occupancy.fabric(), nodes, Share::Whole);
    let traffic = occupancy.lay(request, &held);
    let held = held.with_traffic(traffic);
    occupancy.claim(&held).unwrap();
    held
}

/// Holds nodes for jobs of one node, which send nothing.
fn fill(occupancy: &mut Occupancy, nodes: &[u32]) {
    for &node in nodes {
        hold(occupancy, &Request::whole_nodes(1000 + u64::from(node), 1, 1.0), vec![node]);
    }
}

fn chosen(request: &Request, occupancy: &Occupancy) -> Vec<u32> {
    rule("least-slowdown").place(request, occupancy).unwrap().nodes().to_vec()
}

/// Two pods of two leaves of four nodes. In each pod, a job sends between both leaves, and two nodes of each leaf are
/// free. A job of four nodes must share uplinks with the job of one pod or the other.
fn one_or_the_other(first: &Request, second: &Request) -> Occupancy {
    let mut occupancy = network(&tree(&[4, 2, 2]));
    hold(&mut occupancy, first, vec![0, 1, 4, 5]);
    hold(&mut occupancy, second, vec![8, 9, 12, 13]);
    occupancy
}

/// A new job goes next to the job that communicates for a smaller part of its time.
#[test]
fn what_a_job_loses_counts_for_the_part_of_its_time_in_which_it_communicates() {
    let busy_for = |id, communication| for_part_of_its_time(job(id, 4), communication);
    let next = busy_for(3, 0.5);
    let occupancy = one_or_the_other(&busy_for(1, 0.9), &busy_for(2, 0.1));
    assert!(chosen(&next, &occupancy).iter().all(|&node| node >= 8));
    let occupancy = one_or_the_other(&busy_for(1, 0.1), &busy_for(2, 0.9));
    assert!(chosen(&next, &occupancy).iter().all(|&node| node < 8));
}

/// A job that hardly ever communicates takes the tightest leaves, next to a job that communicates. A job that
/// communicates goes elsewhere.
#[test]
fn a_job_that_hardly_communicates_stays_where_little_room_is_left() {
    let mut occupancy = network(&tree(&[4, 2, 2]));
    hold(&mut occupancy, &for_part_of_its_time(job(1, 4), 0.5), vec![0, 1, 4, 5]);
    let next = |communication| for_part_of_its_time(job(2, 4), communication);
    let next = |communication| Request { nodes: 4, ..next(communication) };
    fill(&mut occupancy, &[8, 12]);
    assert!(chosen(&next(1e-6), &occupancy).iter().all(|&node| node < 8));
    assert!(chosen(&next(0.5), &occupancy).iter().all(|&node| node >= 8));
}

/// Of two equal jobs, a new one goes next to the one whose time limit ends first. A job without a limit counts for the
/// whole time of the new one.
#[test]
fn what_a_job_loses_counts_only_while_both_run() {
    let until = |id, walltime| Request { walltime, ..for_part_of_its_time(job(id, 4), 0.5) };
    for long in [1000.0, f64::INFINITY] {
        let next = until(3, 100.0);
        let mut occupancy = one_or_the_other(&until(1, long), &until(2, 20.0));
        assert!(chosen(&next, &occupancy).iter().all(|&node| node >= 8));
        let occupancy_of_other = one_or_the_other(&until(1, 20.0), &until(2, long));
        assert!(chosen(&next, &occupancy_of_other).iter().all(|&node| node < 8));
        // Both jobs outlast a short job, so one without a limit makes no difference.
        let first = chosen(&until(3, 10.0), &occupancy);
        assert_eq!(chosen(&until(3, 10.0), &occupancy_of_other), first);
        let endless = until(3, f64::INFINITY);
        assert_eq!(chosen(&endless, &occupancy), chosen(&endless, &occupancy_of_other));
        // At this time, nine tenths of the limited job's time are over; later, all of it.
        occupancy.set_time(18.0);
        assert!(chosen(&next, &occupancy).iter().all(|&node| node >= 8));
        occupancy.set_time(30.0);
        assert!(chosen(&next, &occupancy).iter().all(|&node| node >= 8));
    }
}

/// Of two equal jobs, one runs for the next 100 s, and the other is promised its nodes from 90 s on. A new job of 100 s
/// goes next to the second, with which it shares a tenth of its time.
#[test]
fn a_job_that_is_promised_counts_from_its_start_on() {
    let lasting = |id| Request { walltime: 100.0, ..for_part_of_its_time(job(id, 4), 0.5) };
    for promised in [1, 2] {
        let mut occupancy = network(&tree(&[4, 2, 2]));
        for (id, nodes) in [(1, vec![0, 1, 4, 5]), (2, vec![8, 9, 12, 13])] {
            occupancy.set_time(if id == promised { 90.0 } else { 0.0 });
            hold(&mut occupancy, &lasting(id), nodes);
        }
        occupancy.set_time(0.0);
        let nodes = chosen(&lasting(3), &occupancy);
        assert!(nodes.iter().all(|&node| (node < 8) == (promised == 1)), "{promised}: {nodes:?}");
    }
}

/// Two leaves of eight nodes with two links each; the destination's number decides which link is used. Nodes 0 and 8
/// send to each other over the links of even numbers. Of the free nodes 2, 3, 9 and 11, a ring of three avoids these
/// links only on 3, 9 and 11, which filling leaves in index order does not find.
#[test]
fn a_node_is_exchanged_for_another_of_its_leaf() {
    let fabric = tree(&[8, 2]);
    let mut occupancy = network(&fabric);
    let held = hold(&mut occupancy, &exchange(1, 2, (0, 1)), vec![0, 8]);
    fill(&mut occupancy, &[1, 4, 5, 6, 7, 10, 12, 13, 14, 15]);
    let ring = pattern("ring").unwrap().traffic(3, 0).unwrap();
    let traffic = Some(JobTraffic::new(&Arc::new(ring), 1.0));
    let placed = rule("least-slowdown")
        .place(&Request { traffic, ..Request::whole_nodes(2, 3, 1.0) }, &occupancy)
        .unwrap();
    assert_eq!(placed.nodes(), [3, 9, 11]);
    assert!(lost(&fabric, &[&held, &placed]) <= 0.0);
}

/// Four leaves with one free node each. Jobs cross the first two and the last two over the links of even numbers. A job
/// that sends from its first node to its second avoids them if the second node has an odd number, as on the last two
/// leaves.
#[test]
fn a_leaf_is_exchanged_for_another() {
    let fabric = tree(&[4, 4]);
    let mut occupancy = network(&fabric);
    let first = hold(&mut occupancy, &exchange(1, 2, (0, 1)), vec![2, 6]);
    let second = hold(&mut occupancy, &exchange(2, 2, (0, 1)), vec![10, 14]);
    fill(&mut occupancy, &[1, 3, 5, 7, 8, 11, 12, 15]);
    let one_way =
        Traffic::new(2, [TrafficEntry { from: 0, to: 1, bytes: 1e9, messages: 1.0 }]).unwrap();
    let traffic = Some(JobTraffic::new(&Arc::new(one_way), 1.0));
    let placed = rule("least-slowdown")
        .place(&Request { traffic, ..Request::whole_nodes(3, 2, 1.0) }, &occupancy)
        .unwrap();
    assert!(placed.nodes()[1] > 8, "{placed:?}");
    assert!(lost(&fabric, &[&first, &second, &placed]) <= 0.0);
}

/// Two leaves of four nodes of 16 cores. A job sends from each of three nodes of the first leaf to one of the second,
/// as long as needed. An all-to-all program of eight processes fits on any free node; with fewer cores per node it
/// takes several nodes and uses the same uplinks. Copies inside a node are slow, so for the program alone two nodes
/// would be faster.
#[test]
fn cores_per_node_and_nodes_are_chosen_together() {
    let mut machine = pgft("m", &[4, 2], &[1, 1], &[1, 1]);
    let kind = &mut machine.kinds[0];
    (kind.sockets, kind.cores_per_socket) = (1, 8);
    (kind.nic_bandwidth, kind.copy_bandwidth) = (1e9, 3e8);
    for cabling in &mut machine.sites[0].cabling {
        cabling.bandwidth = 1e9;
    }
    let fabric = Arc::new(Fabric::build(&machine).unwrap());
    let routing = Fixed::new(Arc::clone(&fabric), Rule::DestinationModK);
    let profile = Profile::of(&pattern("alltoall(bytes=1e8)").unwrap(), 8, 100.0, 0).unwrap();
    let chosen = |communication: f64, until: f64| {
        let mut occupancy = network(&fabric);
        let neighbor = Request { walltime: until, ..exchange(1, 6, (0, 3)) };
        let neighbor = match communication {
            0.0 => Request { traffic: None, ..neighbor },
            part => {
                let entry = |from, to| TrafficEntry { from, to, bytes: 1e9, messages: 1.0 };
                let traffic =
                    (0..3).flat_map(|rank| [entry(rank, rank + 3), entry(rank + 3, rank)]);
                let traffic = Traffic::new(6, traffic).unwrap();
                Request { traffic: Some(JobTraffic::new(&Arc::new(traffic), part)), ..neighbor }
            }
        };
        hold(&mut occupancy, &neighbor, vec![0, 1, 2, 4, 5, 6]);
        let traffic = pattern("alltoall").unwrap().traffic(8, 0).unwrap();
        let traffic = Some(JobTraffic::new(&Arc::new(traffic), 1.0));
        let request = Request { walltime: 1000.0, traffic, ..Request::default() };
        let wanted = RankKRequest { request: &request, profile: &profile, shared: false };
        let policy = rule("least-slowdown");
        let setting =
            PredictionSetting { occupancy: &occupancy, policy: &*policy, routing: &routing };
        let mut idle = contention("full", &routing).unwrap();
        let ranks = rank_k(wanted, setting, &mut *idle, CoresPerNode::Auto);
        best(&ranks).unwrap().k
    };
    assert_eq!(chosen(0.0, 1000.0), 4, "faster on two nodes");
    assert_eq!(chosen(1.0, 1000.0), 8, "others would lose more than it wins");
    assert_eq!(chosen(1.0, 1.0), 4, "they would not, for they end");
}

/// If traffic is not tracked, or the job's traffic is unknown, it chooses like slurm-tree.
#[test]
fn without_traffic_it_is_slurm_tree() {
    let fabric = tree(&[4, 4, 3]);
    for occupancy in [Occupancy::new(Arc::clone(&fabric)), network(&fabric)] {
        for nodes in 1..20 {
            let request = Request::whole_nodes(1, nodes, 1.0);
            let nodes_of = |name| rule(name).place(&request, &occupancy).unwrap().nodes().to_vec();
            assert_eq!(nodes_of("least-slowdown"), nodes_of("slurm-tree"));
        }
    }
}

/// Two leaves of four nodes with two GPUs and two rails that never meet. Each leaf has one uplink per rail.
const TWO_RAILS: &str = r#"
name = "m"
[node]
sockets = 2
cores-per-socket = 8
memory = 1000
resources = { gpu = 2 }
[[site]]
name = "s"
children = [4, 2]
parents = [2, 1]
"#;

/// Two slots of one GPU each, on these nodes, that exchange data.
fn on_one_gpu(occupancy: &Occupancy, id: u64, nodes: [u32; 2]) -> (Request, Placement) {
    let resources = occupancy.fabric().resources();
    let share = Share::Part(Amounts::named(resources, [("cores", 1), ("gpu", 1)]).unwrap());
    let request = Request { share: share.clone(), ..exchange(id, 2, (0, 1)) };
    let placement = Placement::new(occupancy.fabric(), nodes.to_vec(), share);
    (request, occupancy.name_gpus(placement))
}

fn begin(occupancy: &mut Occupancy, request: &Request, placement: Placement) -> Placement {
    let traffic = occupancy.lay(request, &placement);
    let placement = placement.with_traffic(traffic);
    occupancy.claim(&placement).unwrap();
    placement
}

/// A job sends on rail 0, because it holds GPU 0 of nodes 0 and 4. On the same nodes, a second job gets GPU 1, so it
/// sends on rail 1 and costs nothing. On nodes 1 and 5 it would get GPU 0 and share the uplinks of rail 0: the first
/// job then takes twice as long. A job on whole nodes sends half on each rail, so it has half the weight on the uplinks
/// of rail 0. They leave two thirds to the first job, which takes 1.5 times as long.
#[test]
fn a_job_on_one_rail_costs_those_on_another_nothing() {
    let fabric = Fabric::build(&read::machine_toml(TWO_RAILS).unwrap()).unwrap();
    let mut occupancy = network(&Arc::new(fabric));
    let (first, placement) = on_one_gpu(&occupancy, 1, [0, 4]);
    assert_eq!(placement.gpus(), [GpuSet::one(0), GpuSet::one(0)]);
    begin(&mut occupancy, &first, placement);
    let (second, next_to_it) = on_one_gpu(&occupancy, 2, [0, 4]);
    assert_eq!(next_to_it.gpus(), [GpuSet::one(1), GpuSet::one(1)]);
    let whole = exchange(3, 2, (0, 1));
    // The predicted loss of the first job, which has two slots, and its slowdown once the other job is there.
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    for (request, nodes, slowdown) in
        [(&second, [0, 4], 1.0), (&second, [1, 5], 2.0), (&whole, [1, 5], 1.5)]
    {
        let lost = occupancy.lost_by_others(request, &nodes);
        assert!(near(lost, 2.0 * (slowdown - 1.0)), "{lost} on {nodes:?}, not {slowdown}");
        let placement = Placement::new(occupancy.fabric(), nodes.to_vec(), request.share.clone());
        let placement = occupancy.name_gpus(placement);
        let placement = begin(&mut occupancy, request, placement);
        let slowdowns = occupancy.network().unwrap().slowdowns();
        assert!(near(slowdowns[0].1, slowdown), "{slowdowns:?} on {nodes:?}, not {slowdown}");
        occupancy.release(&placement);
    }
    // Traffic that does not follow the rails of GPUs takes the rails that the routing prefers: here rail 0 to nodes 0
    // and 4.
    let traffic = second.traffic.clone().map(|traffic| traffic.on_rails(false));
    let preferred = Request { traffic, ..second };
    assert!(occupancy.lost_by_others(&preferred, &[0, 4]) > 0.0);
}

/// Pairs of nodes exchange over one cable if they lie on two switches of a group. `least-slowdown` gives each pair of
/// switches few pairs, where a compact placement has four pairs on one cable.
#[test]
fn on_a_dragonfly_a_job_is_spread_where_few_switches_have_few_links() {
    let name = "slingshot(nodes=64, groups=2, switches=8, cables=8)";
    let fabric = Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap());
    let occupancy = network(&fabric);
    // Rank r exchanges with rank r + 4, which is on the next switch if four ranks share one.
    let entry = |from: u32, to: u32| TrafficEntry { from, to, bytes: 1.0, messages: 1.0 };
    let both = (0..4).flat_map(|rank| [entry(rank, rank + 4), entry(rank + 4, rank)]);
    let traffic = Traffic::new(8, both).unwrap();
    let traffic = Some(JobTraffic::new(&Arc::new(traffic), 1.0));
    let request = Request { traffic, ..Request::whole_nodes(1, 8, 1.0) };
    let chosen = rule("least-slowdown").place(&request, &occupancy).unwrap();
    let compact = rule("slurm-tree").place(&request, &occupancy).unwrap();
    let switches = |placement: &Placement| {
        let mut leaves: Vec<u32> =
            placement.nodes().iter().map(|&node| fabric.group(1, node)).collect();
        leaves.dedup();
        leaves.len()
    };
    assert_eq!(switches(&compact), 2);
    assert!(switches(&chosen) > 2, "{:?}", chosen.nodes());
}
