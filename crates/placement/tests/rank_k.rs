//! Cores per node: the run time of every k computed by hand, refusals, and the effect of neighbours.
// Equal values must be exactly equal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeIndex, Routing, pgft, routing};
use topolane_placement::rank_k::{
    CoresPerNode, Misfit, PredictionSetting, Profile, Rank, RankKRequest, best, rank_k, thin,
};
use topolane_placement::{Occupancy, Placement, Refusal, Request, Share, policy};
use topolane_traffic::{Contention, Flows, Traffic, TrafficEntry, contention, pattern};

const LINK: f64 = 1e9;
const COPY: f64 = 2e9;
const MEMORY: f64 = 4e10;
const LATENCY: f64 = 1e-5;
const COPY_LATENCY: f64 = 1e-6;
const BYTES: f64 = 1e6;

/// Two leaves of four nodes with four cores and 1 GB each, and one cable of bandwidth `trunk` from each leaf.
fn machine(trunk: f64) -> Arc<Fabric> {
    leaves_of(4, trunk)
}

fn leaves_of(nodes: u32, trunk: f64) -> Arc<Fabric> {
    let mut machine = pgft("m", &[nodes, 2], &[1, 1], &[1, 1]);
    let kind = &mut machine.kinds[0];
    (kind.sockets, kind.cores_per_socket, kind.memory) = (1, 4, 1_000_000_000);
    (kind.nic_bandwidth, kind.latency) = (LINK, LATENCY);
    (kind.copy_bandwidth, kind.copy_latency) = (COPY, COPY_LATENCY);
    kind.memory_bandwidth = MEMORY;
    machine.sites[0].cabling[0].bandwidth = LINK;
    machine.sites[0].cabling[1].bandwidth = trunk;
    Arc::new(Fabric::build(&machine).unwrap())
}

fn ways(fabric: &Arc<Fabric>) -> Arc<dyn Routing> {
    routing("d-mod-k", fabric, 0).unwrap().into()
}

fn all_to_all(processes: u32) -> Profile {
    let pattern = pattern(&format!("alltoall(bytes={BYTES})")).unwrap();
    Profile::of(&pattern, processes, 1.0, 0).unwrap()
}

/// The outcome of every k for a profile, on the machine as it is.
fn wanted(
    profile: &Profile,
    occupancy: &Occupancy,
    model: &mut dyn Contention,
    cores: CoresPerNode,
) -> Vec<Rank> {
    let policy = policy("first-fit", 0).unwrap();
    let routing = ways(occupancy.fabric());
    let request = Request::default();
    let wanted = RankKRequest { request: &request, profile, shared: false };
    let setting = PredictionSetting { occupancy, policy: &*policy, routing: &*routing };
    rank_k(wanted, setting, model, cores)
}

fn alone(profile: &Profile, trunk: f64) -> Vec<Rank> {
    let fabric = machine(trunk);
    let mut model = contention("full", &*ways(&fabric)).unwrap();
    wanted(profile, &Occupancy::new(fabric), &mut *model, CoresPerNode::Auto)
}

fn collective(rank: &Rank) -> f64 {
    rank.outcome.as_ref().unwrap().1.collective
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected, "{value}, not {expected}");
}

/// Four processes exchange b bytes in three rounds, by distance around the ring. k = 1: three messages one after
/// another, 3 (b / link + latency). k = 2: one message leaves each node in the first and third round and two in the
/// second, 4 b / link + 3 latency; the two copies finish sooner. k = 3: one message per round leaves the node of three,
/// and also the other node. k = 4: three rounds of copies, 3 (b / copy + latency).
#[test]
fn all_to_all_by_hand() {
    let ranks = alone(&all_to_all(4), LINK);
    assert_eq!(ranks.iter().map(|rank| rank.k).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_near(collective(&ranks[0]), 3.0 * (BYTES / LINK + LATENCY));
    assert_near(collective(&ranks[1]), 4.0 * BYTES / LINK + 3.0 * LATENCY);
    assert_near(collective(&ranks[2]), 3.0 * (BYTES / LINK + LATENCY));
    assert_near(collective(&ranks[3]), 3.0 * (BYTES / COPY + COPY_LATENCY));
    assert_eq!(best(&ranks).unwrap().k, 4);
}

/// Five ranks need four rounds.
#[test]
fn rounds_of_any_number_of_ranks() {
    let ranks = alone(&all_to_all(5), 100.0 * LINK);
    assert_near(collective(&ranks[0]), 4.0 * (BYTES / LINK + LATENCY));
}

/// Computing c core-seconds on P cores takes c / P, unless memory limits it: the k processes of a node move m / P bytes
/// each, which takes k m / P / memory bandwidth.
#[test]
fn memory_bounds_computation() {
    let mut profile = all_to_all(4);
    (profile.core_seconds, profile.memory_traffic) = (8.0, 2.0 * MEMORY);
    let seconds: Vec<f64> = alone(&profile, LINK)
        .iter()
        .map(|rank| rank.outcome.as_ref().unwrap().1.computation)
        .collect();
    assert_eq!(seconds, [2.0; 4], "two seconds of a core, at most two of memory");
    profile.memory_traffic = 4.0 * MEMORY;
    let seconds = alone(&profile, LINK);
    let on_one = seconds[3].outcome.as_ref().unwrap().1.computation;
    assert_eq!(on_one, 4.0, "all of it through the memory of one node");
}

/// A k that does not fit says what is missing: cores, memory, nodes ever, or nodes now.
#[test]
fn what_does_not_fit_is_refused_by_name() {
    let fabric = machine(LINK);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&Placement::new(&fabric, vec![0, 1, 2], Share::Whole)).unwrap();
    let mut model = contention("full", &*ways(&fabric)).unwrap();
    let mut profile = all_to_all(9);
    profile.memory = 300_000_000;
    let refused = |k: u32, model: &mut dyn Contention| {
        let ranks = wanted(&profile, &occupancy, model, CoresPerNode::Fixed(k));
        assert_eq!(ranks.len(), 1);
        ranks[0].outcome.clone().err()
    };
    let most = 1_000_000_000;
    assert_eq!(refused(5, &mut *model), Some(Misfit::Cores { wanted: 5, most: 4 }));
    assert_eq!(refused(4, &mut *model), Some(Misfit::Memory { wanted: 1_200_000_000, most }));
    let never = Refusal::Never { wanted: 9, most: 8 };
    assert_eq!(refused(1, &mut *model), Some(Misfit::Refused(never)));
    assert_eq!(refused(3, &mut *model), None);
    assert_eq!(refused(2, &mut *model), None, "five nodes are free");
    occupancy.claim(&Placement::new(&fabric, vec![3], Share::Whole)).unwrap();
    let ranks = wanted(&profile, &occupancy, &mut *model, CoresPerNode::Fixed(2));
    let now = Refusal::NotNow { wanted: 5, free: 4 };
    assert_eq!(ranks[0].outcome, Err(Misfit::Refused(now)));
}

/// Nodes that cannot hold k processes are skipped if other nodes can.
#[test]
fn only_nodes_that_hold_k_are_taken() {
    let mut description = machine(LINK).description();
    let mut small = description.kinds[0].clone();
    small.cores_per_socket = 2;
    description.kinds.push(small);
    if let topolane_fabric::Children::Groups(leaves) = &mut description.sites[0].root.children
        && let topolane_fabric::Children::Nodes(nodes) = &mut leaves[0].children
    {
        nodes[0].kind = 1;
    }
    let fabric = Arc::new(Fabric::build(&description).unwrap());
    let mut model = contention("full", &*ways(&fabric)).unwrap();
    let occupancy = Occupancy::new(fabric);
    let ranks = wanted(&all_to_all(8), &occupancy, &mut *model, CoresPerNode::Auto);
    let nodes = |rank: &Rank| rank.outcome.as_ref().unwrap().0.nodes().to_vec();
    assert_eq!(nodes(&ranks[1]), [0, 1, 2, 3]);
    assert_eq!(nodes(&ranks[3]), [1, 2]);
}

fn background(fabric: &Arc<Fabric>, sent: &[(NodeIndex, NodeIndex)]) -> Arc<Flows> {
    let nodes: Vec<NodeIndex> = (0..fabric.nodes()).collect();
    let entry = |&(from, to): &(u32, u32)| TrafficEntry { from, to, bytes: 1e9, messages: 1.0 };
    let traffic = Traffic::new(nodes.len() as u32, sent.iter().map(entry)).unwrap();
    Arc::new(Flows::new(&traffic, &nodes, &*ways(fabric)).unwrap())
}

/// The traffic of other jobs matters. If there is none, eight processes are best spread over four nodes of each leaf.
/// If neighbours fill the cable between the leaves, one leaf is better. Copies are slow here, so sharing nodes is no
/// gain in itself.
#[test]
fn neighbours_on_the_channels_change_the_choice() {
    let mut description = leaves_of(8, 4.0 * LINK).description();
    description.kinds[0].copy_bandwidth = LINK / 8.0;
    let fabric = Arc::new(Fabric::build(&description).unwrap());
    let mut model = contention("full", &*ways(&fabric)).unwrap();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let others = vec![4, 5, 6, 7, 12, 13, 14, 15];
    occupancy.claim(&Placement::new(&fabric, others, Share::Whole)).unwrap();
    let chosen = |model: &mut dyn Contention| {
        let ranks = wanted(&all_to_all(8), &occupancy, model, CoresPerNode::Auto);
        best(&ranks).unwrap().k
    };
    assert_eq!(chosen(&mut *model), 1);
    for job in 0..40 {
        model.enter(job, background(&fabric, &[(4, 12), (5, 13), (6, 14), (7, 15)]));
    }
    assert_eq!(chosen(&mut *model), 2);
    for job in 0..40 {
        model.leave(job);
    }
    assert_eq!(chosen(&mut *model), 1);
}

proptest! {
    /// Asking changes nothing for the running jobs, and no k has a shorter prediction than the best.
    #[test]
    fn asking_leaves_no_trace(
        sent in prop::collection::vec((0u32..8, 0u32..8), 1..10),
        processes in 1u32..20,
        model in prop::sample::select(vec!["congestion", "max-min", "full"]),
    ) {
        let fabric = machine(LINK);
        let mut model = contention(model, &*ways(&fabric)).unwrap();
        let present = [background(&fabric, &sent), background(&fabric, &sent[..1])];
        model.enter(1, Arc::clone(&present[0]));
        model.enter(2, Arc::clone(&present[1]));
        model.settle();
        let before = (model.rates(1, &present[0]), model.rates(2, &present[1]));
        let occupancy = Occupancy::new(fabric);
        let ranks = wanted(&all_to_all(processes), &occupancy, &mut *model, CoresPerNode::Auto);
        prop_assert_eq!(before, (model.rates(1, &present[0]), model.rates(2, &present[1])));
        prop_assert_eq!(model.settle(), []);
        let total = |rank: &Rank| rank.outcome.as_ref().map(|(_, p)| p.total()).ok();
        let least = best(&ranks).and_then(total);
        prop_assert!(ranks.iter().filter_map(total).all(|other| Some(other) >= least));
    }
}

/// A prediction compares every k and every round with all running traffic, so this is reduced to a sample: no job has
/// more entries than a decision of `least-slowdown` uses, with many jobs each has fewer, and the bytes stay about the
/// same.
#[test]
fn large_jobs_that_run_are_represented_by_fewer_entries() {
    let alltoall = |ranks| Arc::new(pattern("alltoall").unwrap().traffic(ranks, 0).unwrap());
    let entries = |jobs: &[(Vec<u32>, Arc<Traffic>)]| -> usize {
        jobs.iter().map(|(_, traffic)| traffic.entries().len()).sum()
    };
    let (small, large) = (alltoall(32), alltoall(512));
    let mut jobs = vec![(vec![0; 32], Arc::clone(&small)), (vec![0; 512], Arc::clone(&large))];
    thin(&mut jobs);
    assert_eq!(jobs[0].1, small);
    let left = jobs[1].1.entries().len();
    assert!((3500..4700).contains(&left), "{left}");
    let share = jobs[1].1.bytes() / large.bytes();
    assert!((0.85..1.15).contains(&share), "{share}");
    let mut many: Vec<_> = (0..100).map(|_| (vec![0; 512], Arc::clone(&large))).collect();
    thin(&mut many);
    assert!(entries(&many) < 20_000, "{}", entries(&many));
}
