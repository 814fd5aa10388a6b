//! Counted resources: what nodes have, what slots take, and what remains.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeIndex, read};
use topolane_placement::{
    Amounts, Occupancy, POLICIES, Placement, PolicyInfo, Refusal, Request, Share,
};

/// Ten nodes: six with four GPUs of two types, two with an untyped GPU and network adapters, two with neither.
const MACHINE: &str = r#"
name = "m"
[node]
sockets = 1
cores-per-socket = 8
memory = 1000
resources = { gpu = 4, "gpu:a" = 2, "gpu:b" = 2 }
[[node-kind]]
nodes = "m[7-8]"
resources = { gpu = 1, nic = 3 }
[[node-kind]]
nodes = "m[9-10]"
memory = 50
resources = {}
[[site]]
name = "s"
children = [2, 5]
"#;
const NAMES: [&str; 6] = ["cores", "memory", "gpu", "gpu:a", "gpu:b", "nic"];

fn machine() -> Arc<Fabric> {
    Arc::new(Fabric::build(&read::machine_toml(MACHINE).unwrap()).unwrap())
}

/// Random counts of some resources, with at least one core.
fn counts() -> impl Strategy<Value = Vec<(&'static str, u64)>> {
    let count = |name: &'static str, most: u64| {
        prop_oneof![2 => Just(0), 3 => 0..=most].prop_map(move |count| (name, count))
    };
    (
        (1u64..4).prop_map(|cores| ("cores", cores)),
        count("memory", 400),
        count("gpu", 3),
        count("gpu:a", 2),
        count("gpu:b", 2),
        count("nic", 2),
    )
        .prop_map(|(a, b, c, d, e, f)| vec![a, b, c, d, e, f])
}

fn amounts(fabric: &Fabric, counts: &[(&str, u64)]) -> Amounts {
    Amounts::named(fabric.resources(), counts.iter().copied()).unwrap()
}

/// For every node, what is free of every resource and the number of held slots.
fn seen(occupancy: &Occupancy) -> Vec<(Vec<u64>, u32, u32)> {
    let nodes = 0..occupancy.fabric().nodes();
    nodes
        .map(|node| {
            (occupancy.free(node).to_vec(), occupancy.cores_free(node), occupancy.held(node))
        })
        .collect()
}

/// A job: what it takes on a node, its first node, and its slots.
type Job = (Vec<(&'static str, u64)>, u32, u32);

/// Claims those of these jobs that fit, and returns what was claimed.
fn fill(occupancy: &mut Occupancy, jobs: &[Job]) -> Vec<Placement> {
    let fabric = Arc::clone(occupancy.fabric());
    let mut claimed = Vec::new();
    for (counts, first, slots) in jobs {
        let share = Share::Part(amounts(&fabric, counts));
        let nodes: Vec<NodeIndex> = (0..*slots).map(|slot| (first + slot / 2) % 10).collect();
        let placement = Placement::new(&fabric, nodes, share);
        if occupancy.claim(&placement).is_ok() {
            claimed.push(placement);
        }
    }
    claimed
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec((counts(), 0u32..10, 1u32..6), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any claims, no node gives more of a resource than it has, and free plus held is the total.
    #[test]
    fn no_node_gives_more_than_it_has(jobs in jobs()) {
        let fabric = machine();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let claimed = fill(&mut occupancy, &jobs);
        for node in 0..fabric.nodes() {
            for (resource, &count) in fabric.counts(node).iter().enumerate() {
                let held: u64 = claimed
                    .iter()
                    .map(|job| {
                        let Share::Part(amounts) = job.share() else { return 0 };
                        let slots = job.nodes().iter().filter(|&&on| on == node).count() as u64;
                        amounts.get(resource) * slots
                    })
                    .sum();
                prop_assert!(held <= count, "node {node}, {}: {held} of {count}", NAMES[resource]);
                prop_assert_eq!(occupancy.free(node)[resource], count - held);
            }
        }
    }

    /// A claim followed by its release leaves everything as before, and so does an attempt that is undone.
    #[test]
    fn a_release_undoes_a_claim(before in jobs(), then in jobs()) {
        let fabric = machine();
        let mut occupancy = Occupancy::new(fabric);
        fill(&mut occupancy, &before);
        let was = seen(&occupancy);
        let claimed = fill(&mut occupancy, &then);
        let filled = seen(&occupancy);
        for placement in claimed.iter().rev() {
            occupancy.release(placement);
        }
        prop_assert_eq!(seen(&occupancy), &was[..]);
        let mut what_if = occupancy.what_if();
        for placement in claimed {
            prop_assert!(what_if.claim(Arc::new(placement)).is_ok());
        }
        prop_assert_eq!(seen(&what_if), filled);
        drop(what_if);
        prop_assert_eq!(seen(&occupancy), was);
    }

    /// For a stacked request, the number of free slots equals the number that can be claimed one after another. Without
    /// stacking, a node has at most one.
    #[test]
    fn free_slots_are_those_that_can_be_claimed(before in jobs(), wanted in counts(), whole in 0u32..10, stacked: bool) {
        let fabric = machine();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let _ = occupancy.claim(&Placement::new(&fabric, vec![whole], Share::Whole));
        fill(&mut occupancy, &before);
        let share = Share::Part(amounts(&fabric, &wanted));
        let request = Request { nodes: 1, share: share.clone(), stacked, ..Request::default() };
        let free = occupancy.free_slots(&request);
        let mut total = 0;
        for node in 0..fabric.nodes() {
            let mut tried = occupancy.clone();
            let slot = Placement::new(&fabric, vec![node], share.clone());
            let mut slots = 0;
            while tried.claim(&slot).is_ok() && (stacked || slots == 0) {
                slots += 1;
            }
            prop_assert_eq!(free.count(0, node), slots, "node {}", node);
            total += slots;
        }
        prop_assert_eq!(free.total(), total);
    }

    /// A job that takes some of a type also takes that number without the type, in any order of the names.
    #[test]
    fn a_typed_resource_implies_its_untyped_one(wanted in counts()) {
        let fabric = machine();
        let of = |name| wanted.iter().find(|(other, _)| *other == name).map_or(0, |&(_, count)| count);
        let taken = amounts(&fabric, &wanted);
        let index = |name| fabric.resources().index(name).unwrap();
        prop_assert_eq!(taken.get(index("gpu")), of("gpu").max(of("gpu:a") + of("gpu:b")));
        let mut backwards = wanted.clone();
        backwards.reverse();
        prop_assert_eq!(amounts(&fabric, &backwards), taken);
    }

    /// Whole nodes do not change the counts: a node is held whole and given back while other nodes are shared.
    #[test]
    fn whole_nodes_leave_the_counts_alone(before in jobs(), node in 0u32..10) {
        let fabric = machine();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        fill(&mut occupancy, &before);
        let was = seen(&occupancy);
        let whole = Placement::new(&fabric, vec![node], Share::Whole);
        let counts = occupancy.free(node).to_vec();
        if occupancy.claim(&whole).is_ok() {
            prop_assert_eq!(occupancy.free(node), &counts[..]);
            prop_assert_eq!((occupancy.cores_free(node), occupancy.held(node)), (0, 1));
            prop_assert!(!occupancy.fits(node, &Share::part(0, 0)));
            occupancy.release(&whole);
        }
        prop_assert_eq!(seen(&occupancy), was);
    }
}

/// A resource that no node has enough of is refused forever, by name; one that exists but is not free is refused for
/// now.
#[test]
fn a_refusal_names_the_resource_that_no_node_has() {
    let fabric = machine();
    let unknown = Amounts::named(fabric.resources(), [("cores", 1), ("fpga", 2)]).unwrap_err();
    assert_eq!(Refusal::from(unknown.clone()).name(), "never");
    assert_eq!(
        unknown.to_string(),
        "never fits: 2 of resource fpga wanted on each node, no node has any"
    );
    assert!(Amounts::named(fabric.resources(), [("fpga", 0)]).is_ok(), "none is wanted");
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let request = |counts: &[(&str, u64)], nodes| Request {
        nodes,
        share: Share::Part(amounts(&fabric, counts)),
        ..Request::default()
    };
    let on_trees = |info: &&PolicyInfo| (info.build)(0).traits().wirings.has(fabric.wiring());
    for info in POLICIES.iter().filter(on_trees).filter(|info| info.name != "recorded") {
        let policy = (info.build)(0);
        let ask = |counts: &[(&str, u64)], nodes| {
            policy.place(&request(counts, nodes), &occupancy).unwrap_err().to_string()
        };
        assert_eq!(
            ask(&[("cores", 1), ("gpu:a", 3)], 1),
            "never fits: 3 of resource gpu:a wanted on each node, 2 the most that one has",
            "{}",
            info.name
        );
        assert_eq!(
            ask(&[("cores", 9)], 1),
            "never fits: 9 cores wanted on each node, 8 the most that one has"
        );
        assert_eq!(
            ask(&[("cores", 1), ("memory", 1001)], 1),
            "never fits: 1001 bytes of memory wanted on each node, 1000 the most that one has"
        );
        assert_eq!(ask(&[("cores", 1), ("nic", 2)], 3), "never fits: 3 wanted, 2 in all");
        let never = policy.never(&request(&[("cores", 9)], 1), &occupancy);
        assert!(matches!(never, Some(Refusal::Lacks { .. })), "{}: {never:?}", info.name);
    }
    for node in 6..8 {
        let nic = Share::Part(amounts(&fabric, &[("cores", 1), ("nic", 2)]));
        occupancy.claim(&Placement::new(&fabric, vec![node], nic)).unwrap();
    }
    let first_fit = topolane_placement::policy("first-fit", 0).unwrap();
    let refused = first_fit.place(&request(&[("cores", 1), ("nic", 2)], 1), &occupancy);
    assert_eq!(refused, Err(Refusal::NotNow { wanted: 1, free: 0 }));
    let placed = first_fit.place(&request(&[("cores", 1), ("nic", 1)], 1), &occupancy).unwrap();
    assert_eq!(placed.nodes(), [6], "one is left");
}

/// Amounts stay the same in the order of another machine's resources; if one is missing there, the error names it.
#[test]
fn amounts_are_carried_over_by_name() {
    let fabric = machine();
    let mut other = topolane_fabric::resources::Resources::default();
    for name in ["nic", "gpu:a"] {
        other.add(name).unwrap();
    }
    let here = Amounts::named(&other, [("cores", 2), ("nic", 1), ("gpu:a", 1)]).unwrap();
    let there = here.reordered(&other, fabric.resources()).unwrap();
    assert_eq!(there, amounts(&fabric, &[("cores", 2), ("nic", 1), ("gpu:a", 1), ("gpu", 1)]));
    assert_eq!(there.reordered(fabric.resources(), &other), Ok(here));
    let lost = amounts(&fabric, &[("cores", 1), ("gpu:b", 1)]);
    let refusal = lost.reordered(fabric.resources(), &other).unwrap_err();
    assert_eq!(&*refusal.resource, "gpu:b");
    assert!(!amounts(&fabric, &[("nic", 1)]).fit_in(&[4, 4]), "what is not counted is not there");
}
