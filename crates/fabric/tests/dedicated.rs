//! Routes that stay on owned links, on any tree, for random jobs by the condition of
//! docs/explanation/dedicated-links.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)] // which tests of other files use
mod common;
#[path = "common/owners.rs"]
mod owners;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use common::mark_missing;
use owners::jobs_on;
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::read::{NamedText, ibnetdiscover, lfts, ports};
use topolane_fabric::write::LinearTables;
use topolane_fabric::{
    Channel, DedicatedRouting, Description, Fabric, Fixed, JobLinks, NodeSet, RememberedRoutes,
    RouteStep, Routing, Rule, Service, SwitchPlace, pgft, write,
};

/// A tree of two or three levels, each node of which hangs on one leaf switch. A few cables may be missing.
fn tree() -> impl Strategy<Value = Description> {
    let level = || (1u32..5, 1u32..4, 1u32..4);
    let levels = (2u32..5, prop::collection::vec(level(), 1..3), 1u32..3);
    let missing = prop::collection::vec(any::<Index>(), 0..3);
    (levels, missing).prop_map(|((nodes, above, cables), missing)| {
        let children = std::iter::once(nodes).chain(above.iter().map(|level| level.0 + 1));
        let parents = std::iter::once(1).chain(above.iter().map(|level| level.1));
        let parallel = std::iter::once(cables).chain(above.iter().map(|level| level.2));
        let [children, parents, cables] =
            [children.collect(), parents.collect(), parallel.collect()].map(|v: Vec<u32>| v);
        let mut machine = pgft("t", &children, &parents, &cables);
        for which in missing {
            mark_missing(&mut machine, which);
        }
        machine
    })
}

fn build(description: &Description) -> Arc<Fabric> {
    Arc::new(Fabric::build(description).unwrap())
}

fn owned(fabric: &Arc<Fabric>, jobs: &[JobLinks]) -> DedicatedRouting {
    DedicatedRouting::new(fabric, jobs, &Service::default()).unwrap()
}

fn path(routing: &dyn Routing, from: u32, to: u32) -> Option<Vec<Channel>> {
    let mut path = Vec::new();
    routing.path(from, to, &mut path).ok().map(|()| path)
}

/// The cables between switches on a route.
fn between(fabric: &Fabric, path: &[Channel]) -> Vec<u32> {
    let cables = path.iter().map(|channel| channel / 2);
    cables.filter(|&id| fabric.cable_place(id).is_some_and(|at| at.0 > 0)).collect()
}

fn switches(fabric: &Fabric) -> Vec<SwitchPlace> {
    let mut all = Vec::new();
    for level in 1..=fabric.depth() {
        for group in 0..fabric.groups(level) {
            let numbers = 0..fabric.width(0, level);
            all.extend(numbers.map(|number| SwitchPlace { level, group, number }));
        }
    }
    all
}

/// Every entry of every table, by switch and destination.
fn entries(routes: &DedicatedRouting) -> HashMap<(SwitchPlace, u32), Option<RouteStep>> {
    let fabric = routes.fabric();
    let nodes = || 0..fabric.nodes();
    let of = |at| nodes().map(move |to| ((at, to), routes.step(at, SwitchPlace::node(to))));
    switches(fabric).into_iter().flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The route of every ordered pair of nodes of a job is a shortest one, goes up and then down, and between switches
    /// uses only links of that job.
    #[test]
    fn no_way_of_a_job_leaves_its_links(tree in tree(), seed: u64) {
        let fabric = build(&tree);
        let jobs = jobs_on(&fabric, seed);
        let routes = owned(&fabric, &jobs);
        for job in &jobs {
            for &from in &job.nodes {
                for &to in job.nodes.iter().filter(|&&to| to != from) {
                    let way = path(&routes, from, to).unwrap();
                    prop_assert_eq!(way.len() as u32, fabric.hops(from, to).unwrap() + 2);
                    let downs: Vec<bool> = way.iter().map(|channel| channel % 2 == 1).collect();
                    prop_assert!(downs.is_sorted(), "down before up");
                    for cable in between(&fabric, &way) {
                        prop_assert!(job.links.contains(&cable), "{cable} is not job {}'s", job.name);
                    }
                }
            }
        }
    }

    /// With jobs, service nodes and reserved uplink slots, every node reaches every node to which d-mod-k finds a
    /// route, going up and then down. So no table sends traffic in a circle, and no routes wait for each other in one.
    /// Remembered routes are the same.
    #[test]
    fn all_are_reached_up_and_then_down(
        tree in tree(),
        seed: u64,
        served in prop::collection::vec(any::<Index>(), 0..3),
        reserved in 0u32..3,
    ) {
        let fabric = build(&tree);
        let is_reserved = |link: &u32| {
            let (level, _, _, parent, cable) = fabric.cable_place(*link).unwrap();
            let cabling = fabric.cabling(0, level);
            parent * cabling.cables + cable + reserved >= cabling.parents * cabling.cables
        };
        let mut jobs = jobs_on(&fabric, seed);
        jobs.retain(|job| !job.links.iter().any(is_reserved));
        let nodes = served.iter().map(|which| which.index(fabric.nodes() as usize) as u32);
        let service = Service { nodes: nodes.collect(), uplinks: reserved };
        let routes = DedicatedRouting::new(&fabric, &jobs, &service).unwrap();
        let fixed = Fixed::new(Arc::clone(&fabric), Rule::DestinationModK);
        let remembered = RememberedRoutes::new(routes.clone());
        for from in 0..fabric.nodes() {
            for to in 0..fabric.nodes() {
                let way = path(&routes, from, to);
                prop_assert_eq!(&path(&remembered, from, to), &way);
                prop_assert_eq!(way.is_some(), path(&fixed, from, to).is_some());
                let downs: Vec<bool> = way.iter().flatten().map(|channel| channel % 2 == 1).collect();
                prop_assert!(downs.is_sorted(), "{from} to {to}: down before up");
            }
        }
    }

    /// The destinations of a leaf are dealt evenly over the uplinks that its job owns there. From a leaf that owns the
    /// same planes, with one cable each, no uplink leads to two destinations more than another.
    #[test]
    fn uplinks_are_dealt_evenly(tree in tree(), seed: u64) {
        let fabric = build(&tree);
        let jobs = jobs_on(&fabric, seed);
        let routes = owned(&fabric, &jobs);
        for job in jobs.iter().filter(|job| !job.links.is_empty()) {
            let uplinks = |leaf: u32| -> Vec<u32> {
                let up = fabric.uplinks(1, leaf);
                job.links.iter().copied().filter(|id| up.contains(id)).collect()
            };
            let planes = |leaf| -> BTreeSet<u32> {
                uplinks(leaf).iter().map(|&id| fabric.cable_place(id).unwrap().3).collect()
            };
            let leaf = |node| fabric.group(1, node);
            for &from in &job.nodes {
                let mut over: HashMap<u32, HashMap<u32, usize>> = HashMap::new();
                for &to in job.nodes.iter().filter(|&&to| leaf(to) != leaf(from)) {
                    let way = between(&fabric, &path(&routes, from, to).unwrap());
                    *over.entry(leaf(to)).or_default().entry(*way.last().unwrap()).or_default() += 1;
                }
                for (to, over) in over {
                    if planes(to) != planes(leaf(from)) || planes(to).len() < uplinks(to).len() {
                        continue;
                    }
                    let count = |uplink| over.get(uplink).copied().unwrap_or(0);
                    let counts: Vec<usize> = uplinks(to).iter().map(count).collect();
                    let (least, most) = (counts.iter().min(), counts.iter().max());
                    prop_assert!(most.unwrap() - least.unwrap() <= 1, "{:?}", counts);
                }
            }
        }
    }

    /// A job that comes or goes changes only entries for its own destinations.
    #[test]
    fn a_job_changes_its_own_entries_alone(tree in tree(), seed: u64, which: Index) {
        let fabric = build(&tree);
        let mut jobs = jobs_on(&fabric, seed);
        prop_assume!(!jobs.is_empty());
        let routes = owned(&fabric, &jobs);
        let gone = jobs.remove(which.index(jobs.len()));
        let left = owned(&fabric, &jobs);
        let (with, without) = (entries(&routes), entries(&left));
        for (place, step) in &with {
            if without[place] != *step {
                prop_assert!(gone.nodes.contains(&place.1), "{:?}", place);
            }
        }
    }

    /// Without jobs, the routes on a whole tree are those of d-mod-k. If cables are missing, there is a route wherever
    /// d-mod-k finds one.
    #[test]
    fn without_jobs_ways_are_d_mod_k(tree in tree()) {
        let fabric = build(&tree);
        let (routes, fixed) =
            (owned(&fabric, &[]), Fixed::new(Arc::clone(&fabric), Rule::DestinationModK));
        for from in 0..fabric.nodes() {
            for to in 0..fabric.nodes() {
                let ways = (path(&routes, from, to), path(&fixed, from, to));
                prop_assert_eq!(ways.0.is_some(), ways.1.is_some());
                if tree.sites[0].missing.is_empty() {
                    prop_assert_eq!(ways.0, ways.1);
                }
            }
        }
    }

    /// Tables that are written read back as the same routes: in the form of `opensm`'s dump, with the text of
    /// `ibnetdiscover`.
    #[test]
    fn tables_read_back_as_the_same_ways(tree in tree(), seed: u64) {
        let net = write::ibnetdiscover(&Fabric::build(&tree).unwrap());
        let Ok(description) = ibnetdiscover(&net) else { return Ok(()) };
        let fabric = build(&description);
        // A node without cables is not part of a subnet, and the rest may fall apart.
        prop_assume!(fabric.sites() == 1 && fabric.depth() == tree.sites[0].cabling.len());
        prop_assume!(!fabric.is_padded());
        let jobs = jobs_on(&fabric, seed);
        let routes = owned(&fabric, &jobs);
        let source = |text, name| NamedText { text, name };
        let all_ports = ports(&fabric, source(&net, "net")).unwrap();
        let tables = LinearTables::new(&routes, all_ports.clone());
        // The tables are the same whether they are made from scratch or from those without jobs, by the entries of all
        // nodes of jobs.
        let nodes = jobs.iter().flat_map(|job| job.nodes.iter().copied());
        let before = LinearTables::new(&owned(&fabric, &[]), all_ports);
        let after = before.after(&routes, &NodeSet::of(fabric.nodes(), nodes));
        prop_assert_eq!(after.differing(&tables), 0);
        let text = tables.text();
        prop_assert_eq!(tables.changed(source(&text, "tables")).unwrap(), (vec![], 0));
        let Ok(read) = lfts(&fabric, source(&text, "tables"), source(&net, "net")) else {
            prop_assert!(!fabric.missing_cables().is_empty());
            return Ok(());
        };
        for from in 0..fabric.nodes() {
            for to in 0..fabric.nodes() {
                let (way, again) = (path(&routes, from, to).unwrap(), path(&read, from, to).unwrap());
                prop_assert_eq!(between(&fabric, &way), between(&fabric, &again));
            }
        }
    }
}

/// The random jobs above are of all kinds: jobs across leaves and across pods, jobs with a leaf that owns only a part,
/// and jobs on leaves where other jobs own links.
#[test]
fn draws_are_of_all_kinds() {
    let fabric = build(&pgft("t", &[4, 3, 3], &[1, 4, 4], &[1, 1, 1]));
    let (mut across_leaves, mut across_pods, mut parts, mut shared) = (0, 0, 0, 0);
    for seed in 0..50 {
        let jobs = jobs_on(&fabric, seed);
        let mut jobs_of_leaf: HashMap<u32, usize> = HashMap::new();
        for job in jobs.iter().filter(|job| !job.links.is_empty()) {
            let mut uplinks: BTreeMap<u32, usize> = BTreeMap::new();
            let places = job.links.iter().map(|&id| fabric.cable_place(id).unwrap());
            for (_, leaf, ..) in places.clone().filter(|at| at.0 == 1) {
                *uplinks.entry(leaf).or_default() += 1;
            }
            let pods = places.clone().any(|at| at.0 == 2);
            across_leaves += usize::from(!pods);
            across_pods += usize::from(pods);
            parts += usize::from(uplinks.values().min() < uplinks.values().max());
            for &leaf in uplinks.keys() {
                *jobs_of_leaf.entry(leaf).or_default() += 1;
            }
        }
        shared += usize::from(jobs_of_leaf.values().any(|&jobs| jobs > 1));
    }
    let seen = [across_leaves, across_pods, parts, shared];
    assert!(seen.iter().all(|&count| count >= 10), "{seen:?}");
}
