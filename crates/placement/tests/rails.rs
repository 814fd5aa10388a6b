//! Owned links on machines with rails: the same slots in every rail, sufficient in each rail on its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/partitions.rs"]
mod partitions;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use partitions::Tree;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::{CableId, CrossRail, Fabric, MissingCable, NodeIndex, Rule, pgft, write};
use topolane_placement::dedicated::check;
use topolane_placement::{Occupancy, Placement, Policy, Request, policy};

const RULES: [&str; 4] = ["dedicated", "jigsaw", "jigsaw-relaxed", "laas"];

/// The tree with `rails` rails, which meet at the level above `joined`, if given.
fn with_rails(tree: &Tree, rails: u32, joined: Option<usize>) -> Arc<Fabric> {
    let mut parents = tree.parents.clone();
    parents[0] = rails;
    let mut machine = pgft("n", &tree.children, &parents, &tree.cables);
    if let Some(level) = joined {
        machine.sites[0].cabling[level].joined = true;
    }
    machine.sites[0].missing.clone_from(&tree.missing);
    Arc::new(Fabric::build(&machine).unwrap())
}

/// A machine on which jobs arrive and leave.
struct Live {
    occupancy: Occupancy,
    running: Vec<Placement>,
}

impl Live {
    fn on(fabric: &Arc<Fabric>) -> Self {
        Live { occupancy: Occupancy::new(Arc::clone(fabric)), running: Vec::new() }
    }

    fn ask(&mut self, rule: &dyn Policy, request: &Request) -> Option<Placement> {
        let placement = rule.place(request, &self.occupancy).ok()?;
        self.occupancy.claim(&placement).unwrap();
        self.running.push(placement.clone());
        Some(placement)
    }

    fn end(&mut self, index: usize) {
        let gone = self.running.swap_remove(index);
        self.occupancy.release(&gone);
    }
}

/// The cable of a rail at the position of a cable of the tree with one rail.
fn in_rail(one: &Fabric, many: &Fabric, cable: CableId, rail: u32) -> CableId {
    let (level, group, switch, parent, number) = one.cable_place(cable).unwrap();
    let switch = switch + rail * many.rail_width(0, level);
    many.cable(level, group, switch, parent, number).unwrap()
}

/// Taking the same slots in every rail loses nothing. On a machine with equal rails, every policy gives every job the
/// same nodes as on one rail alone, and the same links in each rail.
#[test]
fn rails_that_are_alike_lose_nothing() {
    let mut compared = 0;
    for seed in 0..120 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let tree = Tree { missing: Vec::new(), ..Tree::random(&mut rng) };
        let rails = rng.random_range(2..5);
        let meeting = if rng.random_bool(0.5) { Some(tree.children.len() - 1) } else { None };
        let (one, many) = (tree.fabric(), with_rails(&tree, rails, meeting));
        let rule = policy(RULES[seed as usize % 4], 0).unwrap();
        let (mut on_one, mut on_many) = (Live::on(&one), Live::on(&many));
        for id in 0..40 {
            if !on_one.running.is_empty() && rng.random_bool(0.4) {
                let index = rng.random_range(0..on_one.running.len());
                on_one.end(index);
                on_many.end(index);
                continue;
            }
            let mut request = Request::whole_nodes(id, rng.random_range(1..=one.nodes()), 1.0);
            if rng.random_bool(0.3) {
                request.min_bandwidth = Some(0.6);
            }
            let found = on_one.ask(&*rule, &request);
            let found_on_many = on_many.ask(&*rule, &request);
            let nodes =
                |placement: &Option<Placement>| placement.as_ref().map(|p| p.nodes().to_vec());
            assert_eq!(nodes(&found), nodes(&found_on_many), "seed {seed}: {tree:?}");
            let (Some(found), Some(found_on_many)) = (found, found_on_many) else { continue };
            let of_rail = |rail| found.links().iter().map(move |&cable| (cable, rail));
            let mut expected: Vec<CableId> = (0..rails)
                .flat_map(of_rail)
                .map(|(cable, rail)| in_rail(&one, &many, cable, rail))
                .collect();
            expected.sort_unstable();
            assert_eq!(expected, found_on_many.links(), "seed {seed}: {tree:?}");
            compared += usize::from(!expected.is_empty());
        }
    }
    assert!(compared > 300, "{compared} jobs with links");
}

/// A graph with capacities, in which every switch is one vertex for packets going up and one for packets going down.
#[derive(Default)]
struct Net {
    names: HashMap<String, usize>,
    /// Edges as (from, to, remaining capacity); each is followed by its reverse.
    edges: Vec<(usize, usize, f64)>,
    of: Vec<Vec<usize>>,
}

impl Net {
    fn vertex(&mut self, name: String) -> usize {
        let next = self.of.len();
        let vertex = *self.names.entry(name).or_insert(next);
        if vertex == next {
            self.of.push(Vec::new());
        }
        vertex
    }

    fn add(&mut self, from: String, to: String, capacity: f64) {
        let (from, to) = (self.vertex(from), self.vertex(to));
        for (a, b, room) in [(from, to, capacity), (to, from, 0.0)] {
            self.of[a].push(self.edges.len());
            self.edges.push((a, b, room));
        }
    }

    /// The cables of a job in one rail: those of its nodes, and those it owns.
    fn of(fabric: &Fabric, job: &Placement, rail: u32) -> Net {
        let names = write::link_names(fabric);
        let own = |id: CableId| match fabric.cable_place(id).unwrap() {
            (0, node, _, parent, _) => parent == rail && job.nodes().contains(&node),
            _ => job.links().contains(&id),
        };
        let mut net = Net::default();
        for (id, link) in (0..).zip(&names).filter(|&(id, _)| own(id) && fabric.has_cable(id)) {
            let (lower, upper) = (&link.lower.name, &link.upper.name);
            let _: CableId = id;
            net.add(format!("{lower} up"), format!("{upper} up"), 1.0);
            net.add(format!("{upper} down"), format!("{lower} down"), 1.0);
        }
        let mut turns: Vec<String> = net
            .names
            .keys()
            .filter_map(|name| name.strip_suffix(" up").map(str::to_owned))
            .collect();
        turns.sort_unstable();
        for name in turns {
            if fabric.node_named(&name).is_none() {
                net.add(format!("{name} up"), format!("{name} down"), f64::INFINITY);
            }
        }
        net
    }

    /// The maximal flow (Edmonds and Karp 1972).
    fn max_flow(&mut self, from: &str, to: &str) -> f64 {
        let (from, to) = (self.vertex(from.to_owned()), self.vertex(to.to_owned()));
        let mut flow = 0.0;
        loop {
            let mut by = vec![None; self.of.len()];
            let mut queue = VecDeque::from([from]);
            while let Some(at) = queue.pop_front() {
                for &edge in &self.of[at] {
                    let (_, next, room) = self.edges[edge];
                    if room > 0.0 && by[next].is_none() && next != from {
                        by[next] = Some(edge);
                        queue.push_back(next);
                    }
                }
            }
            let mut way = Vec::new();
            let mut at = to;
            while let Some(edge) = by[at] {
                way.push(edge);
                at = self.edges[edge].0;
            }
            if way.is_empty() {
                return flow;
            }
            let room = way.iter().map(|&edge| self.edges[edge].2).fold(f64::INFINITY, f64::min);
            for edge in way {
                self.edges[edge].2 -= room;
                self.edges[edge ^ 1].2 += room;
            }
            flow += room;
        }
    }
}

/// Checks that half of a job's nodes can send to the other half at the promised bandwidth, in every rail, over the
/// job's own links.
fn carries_every_half(fabric: &Fabric, tree: &Tree, job: &Placement, rng: &mut ChaCha8Rng) {
    let share = tree.shares().into_iter().fold(1.0, f64::min) * job.bandwidth_share();
    for _ in 0..4 {
        let mut nodes: Vec<NodeIndex> = job.nodes().to_vec();
        nodes.shuffle(rng);
        let (senders, receivers) = nodes.split_at(nodes.len() / 2);
        for rail in 0..fabric.rails(0) {
            let there =
                |&&node: &&NodeIndex| fabric.has_cable(fabric.cable(0, node, 0, rail, 0).unwrap());
            let mut net = Net::of(fabric, job, rail);
            for &node in senders.iter().filter(there) {
                net.add("all senders".to_owned(), format!("{} up", fabric.node_name(node)), 1.0);
            }
            for &node in receivers.iter().filter(there) {
                net.add(
                    format!("{} down", fabric.node_name(node)),
                    "all receivers".to_owned(),
                    1.0,
                );
            }
            let wanted = senders.iter().filter(there).count() as f64 * share;
            let flow = net.max_flow("all senders", "all receivers");
            assert!(flow > wanted - 1e-6, "rail {rail}: {flow} of {wanted}, {tree:?} {job:?}");
        }
    }
}

/// A machine with rails and missing cables anywhere except at nodes.
fn damaged(rng: &mut ChaCha8Rng) -> (Tree, Arc<Fabric>) {
    let mut tree = Tree { missing: Vec::new(), ..Tree::random(rng) };
    let rails = rng.random_range(2..4);
    let meeting = match rng.random_range(0..3) {
        0 => None,
        1 => Some(1),
        _ => Some(tree.children.len() - 1),
    };
    let whole = with_rails(&tree, rails, meeting);
    for _ in 0..rng.random_range(0..4) {
        let (level, group, switch, parent, cable) =
            whole.cable_place(rng.random_range(0..whole.links())).unwrap();
        if level > 0 {
            tree.missing.push(MissingCable { level, group, switch, parent, cable });
        }
    }
    let fabric = with_rails(&tree, rails, meeting);
    (tree, fabric)
}

/// Every placement meets the condition in every rail, has its bandwidth by maximal flow, and shares no link.
#[test]
fn placements_on_damaged_rails_carry_what_they_were_promised() {
    let (mut with_links, mut refused) = (0, 0);
    for seed in 0..150 {
        let mut rng = ChaCha8Rng::seed_from_u64(1_000 + seed);
        let (tree, fabric) = damaged(&mut rng);
        let rule = policy(RULES[seed as usize % 4], 0).unwrap();
        let mut live = Live::on(&fabric);
        for id in 0..25 {
            if !live.running.is_empty() && rng.random_bool(0.3) {
                let index = rng.random_range(0..live.running.len());
                live.end(index);
                continue;
            }
            let wanted = rng.random_range(1..=fabric.nodes().min(14));
            let Some(job) = live.ask(&*rule, &Request::whole_nodes(id, wanted, 1.0)) else {
                refused += 1;
                continue;
            };
            if !job.links().is_empty() {
                with_links += 1;
                let met = check(&fabric, job.nodes(), job.links(), job.bandwidth_share());
                assert_eq!(met, Ok(()), "seed {seed}: {tree:?} {job:?}");
                carries_every_half(&fabric, &tree, &job, &mut rng);
            }
            let mut owned = HashSet::new();
            let all = live.running.iter().flat_map(Placement::links);
            assert!(all.into_iter().all(|&cable| owned.insert(cable)), "a cable has two owners");
        }
        while !live.running.is_empty() {
            live.end(0);
        }
        let switches = (1..fabric.depth())
            .flat_map(|level| (0..fabric.groups(level)).map(move |group| (level, group)));
        for (level, group) in switches {
            for switch in 0..fabric.rail_width(0, level) {
                let free =
                    |occupancy: &Occupancy| occupancy.free_uplink_slots(level, group, switch);
                assert_eq!(free(&live.occupancy), free(live.occupancy.empty()));
            }
        }
    }
    assert!(with_links > 300 && refused > 100, "{with_links} {refused}");
}

/// The condition is checked in every rail: links in all but one rail do not meet it.
#[test]
fn a_rail_without_links_is_not_enough() {
    let tree = Tree {
        children: vec![2, 2, 2],
        parents: vec![1, 2, 2],
        cables: vec![1, 1, 1],
        missing: Vec::new(),
    };
    for meeting in [None, Some(2)] {
        let fabric = with_rails(&tree, 3, meeting);
        let rule = policy("dedicated", 0).unwrap();
        let job = Live::on(&fabric).ask(&*rule, &Request::whole_nodes(1, 8, 1.0)).unwrap();
        assert_eq!(check(&fabric, job.nodes(), job.links(), 1.0), Ok(()));
        for rail in 0..3 {
            let rail_of = |cable: CableId| {
                let (level, _, switch, ..) = fabric.cable_place(cable).unwrap();
                switch / fabric.rail_width(0, level)
            };
            let others: Vec<CableId> =
                job.links().iter().copied().filter(|&cable| rail_of(cable) != rail).collect();
            assert!(check(&fabric, job.nodes(), &others, 1.0).is_err(), "without rail {rail}");
        }
    }
}

/// All cables above the leaves that a job's traffic may take, with any port that a rule may choose, on any rail;
/// traffic between rails uses NVLink.
fn may_take(fabric: &Fabric, job: &Placement) -> HashSet<CableId> {
    let mut taken = HashSet::new();
    let rails = fabric.rails(0);
    for &from in job.nodes() {
        for &to in job.nodes() {
            for (first, last) in (0..rails).flat_map(|a| (0..rails).map(move |b| (a, b))) {
                for seed in 0..6 {
                    let rule = Rule::Random { seed };
                    let route =
                        fabric.rail_route(rule, (from, to), (first, last), CrossRail::NvLink);
                    taken.extend(route.unwrap().links.iter().map(|link| link.cable));
                }
            }
        }
    }
    taken
}

/// If no two jobs cross the same group, they share no link on any rail, wherever the rails meet.
#[test]
fn isolated_jobs_share_no_link_on_any_rail() {
    let mut crossing = 0;
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(5_000 + seed);
        let tree = Tree { missing: Vec::new(), ..Tree::random(&mut rng) };
        let meeting = match seed % 3 {
            0 => None,
            1 => Some(1),
            _ => Some(tree.children.len() - 1),
        };
        let fabric = with_rails(&tree, rng.random_range(2..4), meeting);
        let rule = policy("isolated", 0).unwrap();
        let mut live = Live::on(&fabric);
        for id in 0..12 {
            let wanted = rng.random_range(1..=fabric.nodes().min(8));
            live.ask(&*rule, &Request::whole_nodes(id, wanted, 1.0));
        }
        let mut users = HashSet::new();
        for job in &live.running {
            crossing += usize::from(!job.crossed().is_empty());
            for cable in may_take(&fabric, job) {
                assert!(users.insert(cable), "cable {cable} carries two jobs: {tree:?}");
            }
        }
    }
    assert!(crossing > 20, "{crossing}");
}
