//! Room made by requeueing jobs: never a plan that makes none, never a cheaper one than the bound says, and on small states the
//! cheapest of all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::cmp::Reverse;
use std::sync::Arc;

use common::{rule, seen, tree, whole};
use proptest::prelude::*;
use topolane_fabric::{
    Description, DomainDescription, Fabric, NodeIndex, NodeSet, fat_tree, pgft, read,
};
use topolane_placement::{
    Amounts, CountedAmounts, Disruption, FreedAmounts, Level, NoRoom, Occupancy, POLICIES,
    Placement, Policy, PresentJob, Request, RoomEffort, RoomHelps, RoomPlan, Share, Within,
    make_counted_room, make_room, place_within,
};

/// A job that runs.
#[derive(Debug, Clone)]
struct Job {
    request: Request,
    placement: Arc<Placement>,
    disruption: Disruption,
    group: Option<usize>,
}

impl Job {
    fn cost(&self) -> Option<f64> {
        match self.disruption {
            Disruption::Requeue(cost) | Disruption::Move(cost) => Some(cost),
            Disruption::Untouchable => None,
        }
    }
}

fn present(jobs: &[Job]) -> Vec<PresentJob<'_>> {
    let mut present = Vec::new();
    for Job { request, placement, disruption, group } in jobs {
        let (disruption, group) = (*disruption, *group);
        present.push(PresentJob { request, placement, disruption, group, uses: 1, rank: 0 });
    }
    present
}

/// Where a request goes, and the jobs that move.
type Places = (Placement, Vec<(u64, Arc<Placement>)>);

/// Where the policy places the request without some jobs, and then those of them that move, the largest first.
fn places(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    gone: &[&Job],
) -> Option<Places> {
    let mut then = occupancy.what_if();
    for job in gone {
        then.release(Arc::clone(&job.placement));
    }
    let placed = place_within(policy, request, &then).ok()?;
    then.claim(Arc::new(placed.clone())).unwrap();
    let mut moving: Vec<&&Job> =
        gone.iter().filter(|job| matches!(job.disruption, Disruption::Move(_))).collect();
    moving.sort_by_key(|job| (Reverse(job.placement.nodes().len()), job.request.id));
    let mut moved = Vec::new();
    for job in moving {
        let nodes = job.placement.nodes().len() as u32;
        let again = Request { nodes, most: nodes, ..job.request.clone() };
        let placement = Arc::new(place_within(policy, &again, &then).ok()?);
        then.claim(Arc::clone(&placement)).unwrap();
        moved.push((again.id, placement));
    }
    moved.sort_by_key(|&(id, _)| id);
    Some((placed, moved))
}

fn keeps_to(budgets: &[u32], gone: &[&Job]) -> bool {
    budgets.iter().enumerate().all(|(group, &most)| {
        gone.iter().filter(|job| job.group == Some(group)).count() <= most as usize
    })
}

/// The least cost of all sets of jobs without which the policy places the request; `None` if there is none.
fn cheapest(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    jobs: &[Job],
    budgets: &[u32],
) -> Option<f64> {
    let touchable: Vec<&Job> = jobs.iter().filter(|job| job.cost().is_some()).collect();
    let of = |set: u32| -> Vec<&Job> {
        let members = touchable.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
        members.map(|(_, job)| *job).collect()
    };
    let cost = |set: u32| of(set).iter().filter_map(|job| job.cost()).sum::<f64>();
    let mut sets: Vec<u32> = (0..1u32 << touchable.len()).collect();
    sets.retain(|&set| keeps_to(budgets, &of(set)));
    sets.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)));
    sets.into_iter().find(|&set| places(policy, request, occupancy, &of(set)).is_some()).map(cost)
}

/// That a plan is one: the policy places the request where the plan says once its jobs are gone, these may be disturbed and cost what
/// the plan says, and the state is as before.
fn check(
    plan: &RoomPlan,
    policy: &dyn Policy,
    request: &Request,
    occupancy: &Occupancy,
    jobs: &[Job],
    budgets: &[u32],
) {
    let moved: Vec<u64> = plan.moved.iter().map(|(id, _)| *id).collect();
    let is_gone = |job: &&Job| match job.disruption {
        Disruption::Move(_) => moved.contains(&job.request.id),
        _ => plan.requeued.contains(&job.request.id),
    };
    let gone: Vec<&Job> = jobs.iter().filter(is_gone).collect();
    assert_eq!(gone.len(), plan.requeued.len() + moved.len());
    assert!(keeps_to(budgets, &gone));
    let cost: f64 = gone.iter().map(|job| job.cost().expect("untouchable")).sum();
    assert!((cost - plan.cost).abs() <= 1e-9 * cost, "{cost} {}", plan.cost);
    assert!(plan.least <= plan.cost);
    let mut after = occupancy.clone();
    let placed = places(policy, request, &mut after, &gone).expect("no room");
    assert_eq!(placed, (Placement::clone(&plan.placement), plan.moved.clone()));
    for job in gone {
        after.release(&job.placement);
    }
    after.claim(&plan.placement).unwrap();
    for (_, placement) in &plan.moved {
        after.claim(placement).unwrap();
    }
}

/// Leaves that are domains of one name each.
fn racks(of: u32, racks: u32) -> Arc<Fabric> {
    let tree = pgft("n", &[of, racks], &[1, 1], &[1, 1]);
    let names = Fabric::build(&tree).unwrap();
    let domain = |rack: u32| DomainDescription {
        name: format!("rack{rack}"),
        nodes: names.node_range(1, rack).map(|node| names.node_name(node).to_owned()).collect(),
        bandwidth: 1e12,
    };
    let domains = (0..racks).map(domain).collect();
    Arc::new(Fabric::build(&Description { domains, ..tree }).unwrap())
}

fn machines() -> Vec<Arc<Fabric>> {
    let fat = |radix, pods| Arc::new(Fabric::build(&fat_tree(radix, pods).unwrap()).unwrap());
    vec![
        fat(4, 4),
        fat(4, 2),
        tree(&[4, 3, 2]),
        tree(&[6, 4]),
        racks(4, 6),
        racks(6, 3),
        common::build(&[vec![(vec![3, 4], false), (vec![2], true), (vec![4, 1, 2], false)]], true),
        common::build(&[vec![(vec![3, 3], false)], vec![(vec![4, 2], false)]], false),
    ]
}

/// Nodes of a job; its cost, none if it is untouchable, and whether it moves; its group; whether it shares its nodes; whether another rule
/// placed it.
type Word = (u32, Option<(u32, bool)>, Option<usize>, bool, bool);

/// A state and a question in a few words, so that a failing case is short.
#[derive(Debug, Clone)]
struct Scene {
    machine: usize,
    policy: usize,
    jobs: Vec<Word>,
    budgets: Vec<u32>,
    wanted: u32,
    shares: bool,
    segment: Option<u32>,
    within: Option<(u8, bool)>,
    out: Option<u32>,
    /// Which nodes the request may use, a bit each.
    eligible: Option<u32>,
}

fn scene() -> impl Strategy<Value = Scene> {
    let cost = prop::option::weighted(0.9, (0u32..60, prop::bool::weighted(0.4)));
    let group = prop::option::weighted(0.5, 0usize..2);
    let (seldom, often) = (prop::bool::weighted(0.15), prop::bool::weighted(0.3));
    let jobs = prop::collection::vec((1u32..7, cost, group, seldom, often), 3..9);
    let budgets = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(0u32..4, 2)];
    let machines = 0..machines().len();
    let options = (
        seldom,
        prop::option::weighted(0.3, 1u32..6),
        prop::option::weighted(0.3, (0u8..3, prop::bool::weighted(0.7))),
        prop::option::weighted(0.2, 0u32..24),
        prop::option::weighted(0.25, any::<u32>()),
    );
    (machines, 0..POLICIES.len(), jobs, budgets, 1u32..17, options).prop_map(
        |(machine, policy, jobs, budgets, wanted, (shares, segment, within, out, eligible))| {
            Scene { machine, policy, jobs, budgets, wanted, shares, segment, within, out, eligible }
        },
    )
}

impl Scene {
    fn share(shares: bool) -> Share {
        if shares { Share::part(3, 0) } else { Share::Whole }
    }

    /// The state, who runs, and the request.
    fn set(&self) -> (Occupancy, Vec<Job>, Request) {
        let fabric = machines()[self.machine].clone();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let mut jobs = Vec::new();
        for (id, &(nodes, cost, group, shares, other)) in (0..).zip(&self.jobs) {
            let request = Request {
                share: Scene::share(shares),
                recorded: Some((0..nodes).map(|node| (node + 3) % fabric.nodes()).collect()),
                ..Request::whole_nodes(id, nodes, 1.0)
            };
            let rule = if other { rule("scattered") } else { (POLICIES[self.policy].build)(1) };
            // Without links of its own such a job is in the way of others.
            let Ok(placement) = rule.place(&request, &occupancy) else { continue };
            let placement = Arc::new(placement);
            occupancy.claim(&placement).unwrap();
            let disruption = match cost {
                None => Disruption::Untouchable,
                Some((cost, false)) => Disruption::Requeue(f64::from(cost)),
                Some((cost, true)) => Disruption::Move(f64::from(cost)),
            };
            jobs.push(Job { request, placement, disruption, group });
        }
        if let Some(node) = self.out {
            occupancy.set_in_service(node, false);
        }
        let wanted = self.wanted.min(fabric.nodes());
        let within = self.within.map(|(level, required)| (Level::Tree(level), required));
        let within = within.filter(|(level, _)| level.check(&fabric).is_ok());
        let request = Request {
            share: Scene::share(self.shares),
            segment: self.segment,
            within: match within {
                None => Within::Unsaid,
                Some((level, true)) => Within::Required(level),
                Some((level, false)) => Within::Preferred(level),
            },
            recorded: Some((0..wanted).collect()),
            eligible: self.eligible.map(|mask| {
                let may = |node: &NodeIndex| mask >> (node % 32) & 1 == 1;
                Arc::new(NodeSet::of(fabric.nodes(), (0..fabric.nodes()).filter(may)))
            }),
            ..Request::whole_nodes(99, wanted, 1.0)
        };
        (occupancy, jobs, request)
    }
}

/// A job whose slots another system counts: slots, what each takes, its cost, rank, budget and what it uses of that.
type CountedWord = (u32, [i64; 2], u32, u32, Option<usize>, u32);

/// A state whose slots another system counts.
#[derive(Debug, Clone)]
struct CountedScene {
    machine: usize,
    policy: usize,
    jobs: Vec<CountedWord>,
    budgets: Vec<u32>,
    wanted: u32,
    takes: [i64; 2],
    /// Whether it may have several slots on a node.
    stacked: bool,
    eligible: Option<u32>,
}

/// What a node has of each kind.
const HAS: [i64; 2] = [4, 6];

fn counted_scene() -> impl Strategy<Value = CountedScene> {
    let takes = || [0i64..5, 1i64..5];
    let group = prop::option::weighted(0.5, 0usize..2);
    let jobs = prop::collection::vec((1u32..6, takes(), 0u32..60, 0u32..3, group, 1u32..4), 3..9);
    let budgets = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(0u32..6, 2)];
    let machine = 0..machines().len();
    let eligible = prop::option::weighted(0.2, any::<u32>());
    (machine, 0..POLICIES.len(), jobs, budgets, 1u32..17, takes(), any::<bool>(), eligible)
        .prop_map(|(machine, policy, jobs, budgets, wanted, takes, stacked, eligible)| {
            CountedScene { machine, policy, jobs, budgets, wanted, takes, stacked, eligible }
        })
}

impl CountedScene {
    fn request(&self, id: u64, nodes: u32, slots: Arc<[u32]>) -> Request {
        Request {
            share: Share::Part(Amounts::default()),
            stacked: self.stacked,
            slots: Some(slots),
            ..Request::whole_nodes(id, nodes, f64::INFINITY)
        }
    }

    /// The state, who runs, what is counted, and the request.
    fn set(&self) -> (Occupancy, Vec<(Request, Arc<Placement>)>, CountedAmounts, Request) {
        let fabric = machines()[self.machine].clone();
        let nodes = fabric.nodes() as usize;
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let most: Vec<u32> = vec![if self.stacked { 3 } else { 1 }; nodes];
        let takes = self.takes.to_vec();
        let mut counts = CountedAmounts { takes, free: HAS.repeat(nodes), most, left: Vec::new() };
        let mut jobs = Vec::new();
        for (id, &(slots, takes, ..)) in (0..).zip(&self.jobs) {
            let now = CountedAmounts { takes: takes.to_vec(), ..counts.clone() }.slots([]);
            let request = self.request(id, slots, now);
            let rule = (POLICIES[self.policy].build)(1);
            let placement = rule.place(&request, &occupancy).ok().map(Arc::new);
            let placement = placement.filter(|found| occupancy.claim(found).is_ok());
            let mut left = FreedAmounts::default();
            for &node in placement.iter().flat_map(|found| found.nodes()) {
                left.nodes.push(node);
                left.amounts.extend(takes);
                let free = counts.free.iter_mut().skip(node as usize * 2);
                free.zip(takes).for_each(|(free, takes)| *free -= takes);
            }
            if let Some(placement) = placement {
                counts.left.push(left);
                jobs.push((request, placement));
            }
        }
        let request = Request {
            recorded: Some((0..self.wanted).collect()),
            eligible: self.eligible.map(|mask| {
                let may = |node: &NodeIndex| mask >> (node % 32) & 1 == 1;
                Arc::new(NodeSet::of(fabric.nodes(), (0..fabric.nodes()).filter(may)))
            }),
            ..self.request(99, self.wanted, Arc::from([]))
        };
        (occupancy, jobs, counts, request)
    }
}

proptest! {
    // More with PROPTEST_CASES.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(4_000)))]

    /// Where another system counts slots, a plan is found exactly if some set of jobs makes room that keeps to the budgets. It has
    /// no job of a higher rank than it needs, costs what the cheapest of these sets costs, and all of its jobs must go.
    #[test]
    fn the_cheapest_where_slots_are_counted(scene in counted_scene()) {
        let (mut occupancy, jobs, counts, request) = scene.set();
        let policy = (POLICIES[scene.policy].build)(1);
        let word = |job: usize| scene.jobs[jobs[job].0.id as usize];
        let present: Vec<PresentJob<'_>> = (0..jobs.len()).map(|job| {
            let (_, _, cost, rank, group, uses) = word(job);
            let (request, placement) = (&jobs[job].0, &jobs[job].1);
            let disruption = Disruption::Requeue(f64::from(cost));
            PresentJob { request, placement, disruption, group, uses, rank }
        }).collect();
        let effort = RoomEffort { budgets: scene.budgets.clone(), ..RoomEffort::on(occupancy.fabric()) };
        let found = make_counted_room(&*policy, &request, &mut occupancy, &present, &counts, &effort);
        let of = |set: u32| (0..jobs.len()).filter(move |job| set >> job & 1 == 1);
        let rank = |set: u32| of(set).map(|job| word(job).3).max().unwrap_or(0);
        let cost = |set: u32| of(set).map(|job| word(job).2).sum::<u32>();
        let mut fits = |set: u32| {
            let slots = counts.slots(of(set));
            let room = Some(counts.most.as_slice().into());
            let request = Request { slots: Some(slots), room, ..request.clone() };
            let mut then = occupancy.what_if();
            of(set).for_each(|job| then.release(Arc::clone(&jobs[job].1)));
            place_within(&*policy, &request, &then).ok()
        };
        let mut sets: Vec<u32> = (0..1u32 << jobs.len()).collect();
        sets.retain(|&set| scene.budgets.iter().enumerate().all(|(group, &most)| {
            let used = of(set).filter(|&job| word(job).4 == Some(group)).map(|job| word(job).5);
            used.sum::<u32>() <= most
        }));
        sets.sort_by_key(|&set| (rank(set), cost(set)));
        let best = sets.into_iter().find(|&set| fits(set).is_some());
        match (&found, best) {
            (Ok(plan), Some(best)) => {
                let is_gone = |job: &usize| plan.requeued.contains(&jobs[*job].0.id);
                let gone = (0..jobs.len()).filter(is_gone).fold(0, |set, job| set | 1 << job);
                prop_assert_eq!((rank(gone), cost(gone)), (rank(best), cost(best)));
                prop_assert_eq!(fits(gone), Some(Placement::clone(&plan.placement)));
                prop_assert!((plan.least - plan.cost).abs() < 1e-9, "not proven");
                prop_assert!((plan.cost - f64::from(cost(best))).abs() < 1e-9);
                for job in of(gone) {
                    prop_assert!(fits(gone & !(1 << job)).is_none(), "job {} need not go", jobs[job].0.id);
                }
            }
            (Err(NoRoom::Impossible), None) => {}
            (found, best) => prop_assert!(false, "{found:?}, {best:?}"),
        }
    }
}

proptest! {
    // More with PROPTEST_CASES.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(4_000)))]

    /// Under every policy a plan is found exactly if some set of jobs makes room, and it costs what the cheapest of all sets costs. No
    /// plan is one that does not make room. The bound is one. The order of the jobs does not matter.
    #[test]
    fn the_cheapest_of_all_sets(scene in scene()) {
        let (mut occupancy, mut jobs, request) = scene.set();
        let policy = (POLICIES[scene.policy].build)(1);
        let effort = RoomEffort { budgets: scene.budgets.clone(), ..RoomEffort::on(occupancy.fabric()) };
        let before = seen(&occupancy);
        let found = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort);
        prop_assert_eq!(seen(&occupancy), before);
        let least = cheapest(&*policy, &request, &mut occupancy, &jobs, &effort.budgets);
        match (&found, least) {
            (Ok(plan), Some(least)) => {
                check(plan, &*policy, &request, &occupancy, &jobs, &effort.budgets);
                prop_assert!(plan.cost <= least * (1.0 + 1e-9), "{} for {}", plan.cost, least);
                prop_assert!(plan.least <= least * (1.0 + 1e-9), "{} is no bound", plan.least);
                prop_assert!(plan.least >= least * (1.0 - 1e-9), "not proven");
            }
            (Err(NoRoom::Impossible), None) => {}
            (found, least) => prop_assert!(false, "{found:?}, {least:?}"),
        }
        jobs.reverse();
        prop_assert_eq!(
            make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort),
            found
        );
    }

    /// If one to three jobs may go and no proof is wanted, the plan is one, and no set of up to `most` jobs costs less. Where more room may be
    /// in the policy's way, the plan is one.
    #[test]
    fn the_cheapest_of_few(scene in scene(), most in 1u32..4) {
        let (mut occupancy, mut jobs, request) = scene.set();
        for job in &mut jobs {
            job.group = Some(0);
        }
        let policy = (POLICIES[scene.policy].build)(1);
        let effort = RoomEffort { budgets: vec![most], states: 0, ..RoomEffort::on(occupancy.fabric()) };
        let found = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort);
        let least = cheapest(&*policy, &request, &mut occupancy, &jobs, &effort.budgets);
        if let Ok(plan) = &found {
            check(plan, &*policy, &request, &occupancy, &jobs, &effort.budgets);
        }
        if policy.room_helps(&request) == RoomHelps::Always && request.within == Within::Unsaid {
            match (found, least) {
                (Ok(plan), Some(least)) => prop_assert!(plan.cost <= least * (1.0 + 1e-9), "{} for {least}", plan.cost),
                (Err(_), None) => {}
                (found, least) => prop_assert!(false, "{found:?}, {least:?}"),
            }
        }
    }

    /// With few questions a plan may cost more, but it makes room, and the reported bound is one.
    #[test]
    fn with_few_questions(scene in scene(), questions in 0u32..20) {
        let (mut occupancy, jobs, request) = scene.set();
        let policy = (POLICIES[scene.policy].build)(1);
        let effort = RoomEffort { budgets: scene.budgets.clone(), questions, ..RoomEffort::on(occupancy.fabric()) };
        let found = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort);
        let least = cheapest(&*policy, &request, &mut occupancy, &jobs, &effort.budgets);
        match found {
            Ok(plan) => {
                check(&plan, &*policy, &request, &occupancy, &jobs, &effort.budgets);
                prop_assert!(plan.least <= least.unwrap() * (1.0 + 1e-9));
                // A job that moves is a question, too. The first and the last place are always asked for.
                let jobs = jobs.len() as u32;
                prop_assert!(plan.questions <= questions + 2 * (1 + jobs));
            }
            Err(NoRoom::Impossible) => prop_assert_eq!(least, None),
            Err(NoRoom::NotFound { .. }) => {}
        }
    }

    /// Every whole part of a placement lies in one of the homes that the policy names.
    #[test]
    fn placements_lie_at_home(scene in scene()) {
        let (occupancy, _, request) = scene.set();
        let policy = (POLICIES[scene.policy].build)(1);
        if let Some(homes) = policy.homes(&request, &occupancy)
            && let Ok(placement) = policy.place(&request, &occupancy)
        {
            // Homes of several parts do not overlap, so parts in them can be counted.
            let inside = |set: &Vec<NodeIndex>| {
                placement.nodes().iter().filter(|node| set.contains(node)).count() as u32
            };
            let parts: u32 = homes.sets.iter().map(|set| inside(set) / homes.part).sum();
            prop_assert!(parts >= request.nodes / homes.part, "{homes:?} {placement:?}");
        }
    }
}

/// Dedicated jobs on 64 nodes that came and, where the flag is not set, went. To move one costs its nodes; one of `wanted` nodes or more
/// stays.
fn dedicated(occupancy: &mut Occupancy, jobs: &[(u32, bool)], wanted: u32) -> Vec<Job> {
    let owned = rule("dedicated");
    let (mut present, mut left) = (Vec::new(), Vec::new());
    for (id, &(nodes, stays)) in (0..).zip(jobs) {
        let request = Request::whole_nodes(id, nodes, 1.0);
        let Ok(placement) = owned.place(&request, occupancy) else { continue };
        let placement = Arc::new(placement);
        occupancy.claim(&placement).unwrap();
        let disruption = if nodes < wanted {
            Disruption::Move(f64::from(nodes))
        } else {
            Disruption::Untouchable
        };
        let job = Job { request, placement, disruption, group: Some(0) };
        if stays { present.push(job) } else { left.push(job) }
    }
    for job in &left {
        occupancy.release(&job.placement);
    }
    present
}

proptest! {
    /// A plan moves no more jobs than it may, none as large as the request, each onto as many nodes as it had. When all of them have
    /// left their places, their new ones and the request's can all be claimed, links included. The search changes nothing.
    #[test]
    fn all_fit_after_the_moves(
        jobs in prop::collection::vec((1u32..9, prop::bool::weighted(0.8)), 20..60),
        wanted in 5u32..24,
        most in 1u32..4,
    ) {
        let mut occupancy =
            Occupancy::new(Arc::new(Fabric::build(&fat_tree(8, 4).unwrap()).unwrap()));
        let jobs = dedicated(&mut occupancy, &jobs, wanted);
        let policy = rule("dedicated");
        let request = Request::whole_nodes(1_000, wanted, 1.0);
        prop_assume!(policy.place(&request, &occupancy).is_err());
        let effort = RoomEffort { budgets: vec![most], states: 0, ..RoomEffort::on(occupancy.fabric()) };
        let before = seen(&occupancy);
        let found = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort);
        prop_assert_eq!(seen(&occupancy), before);
        if let Ok(plan) = found {
            prop_assert!(!plan.moved.is_empty() && plan.requeued.is_empty());
            check(&plan, &*policy, &request, &occupancy, &jobs, &effort.budgets);
        }
    }
}

/// Jobs on the nodes of a machine, each with its nodes and its cost.
fn running(occupancy: &mut Occupancy, jobs: &[(&[NodeIndex], f64)]) -> Vec<Job> {
    let fabric = Arc::clone(occupancy.fabric());
    let mut running = Vec::new();
    for (id, (nodes, cost)) in (0..).zip(jobs) {
        let placement = Arc::new(whole(&fabric, nodes));
        occupancy.claim(&placement).unwrap();
        let request = Request::whole_nodes(id, nodes.len() as u32, 1.0);
        running.push(Job {
            request,
            placement,
            disruption: Disruption::Requeue(*cost),
            group: None,
        });
    }
    running
}

/// A request that fits costs nothing, and no job goes.
#[test]
fn a_request_that_fits() {
    let mut occupancy = Occupancy::new(tree(&[4, 2]));
    let jobs = running(&mut occupancy, &[(&[0], 0.0)]);
    let request = Request::whole_nodes(9, 7, 1.0);
    let policy = rule("first-fit");
    let effort = RoomEffort::on(occupancy.fabric());
    let plan = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort).unwrap();
    assert_eq!((plan.requeued, plan.cost, plan.least, plan.questions), (vec![], 0.0, 0.0, 1));
    assert_eq!(plan.placement.nodes(), [1, 2, 3, 4, 5, 6, 7]);
}

/// The cheapest set is not what the jobs with the least cost for a node give, which are job 3, then job 1.
#[test]
fn the_best_set_is_no_greedy_one() {
    let mut occupancy = Occupancy::new(tree(&[8]));
    let jobs =
        running(&mut occupancy, &[(&[0, 1, 2], 5.0), (&[3, 4], 3.0), (&[5, 6], 3.5), (&[7], 1.0)]);
    let policy = rule("first-fit");
    let mut ask = |nodes, budgets: &[u32], jobs: &[Job]| {
        let effort = RoomEffort { budgets: budgets.to_vec(), ..RoomEffort::on(occupancy.fabric()) };
        let request = Request::whole_nodes(9, nodes, 1.0);
        let plan = make_room(&*policy, &request, &mut occupancy, &present(jobs), &effort)?;
        assert!(plan.cost.total_cmp(&plan.least).is_eq());
        Ok::<_, NoRoom>((plan.requeued, plan.cost))
    };
    assert_eq!(ask(3, &[], &jobs), Ok((vec![1, 3], 4.0)));
    assert_eq!(ask(4, &[], &jobs), Ok((vec![0, 3], 6.0)));
    // One job of a group only.
    let grouped: Vec<Job> = jobs.iter().map(|job| Job { group: Some(0), ..job.clone() }).collect();
    assert_eq!(ask(3, &[1], &grouped), Ok((vec![0], 5.0)));
    assert_eq!(ask(4, &[1], &grouped), Err(NoRoom::Impossible));
    assert_eq!(ask(4, &[0], &grouped), Err(NoRoom::Impossible));
}

/// Kueue's issue 10497: a node has eight GPUs and places for two pods. One job has all GPUs, another one of the places. Two pods of four GPUs each need
/// both of them gone; the job without GPUs must not be forgotten.
#[test]
fn kueue_10497_a_blocker_without_gpus() {
    let machine = "name = \"m\"\n[node]\nsockets = 1\ncores-per-socket = 64\nmemory = 1000\n\
                   resources = { gpu = 8, pods = 2 }\n[[site]]\nname = \"s\"\nchildren = [2, 1]\n";
    let fabric = Arc::new(Fabric::build(&read::machine_toml(machine).unwrap()).unwrap());
    let pods = |gpus: u64| {
        let counts = [("cores", 1), ("pods", 1), ("gpu", gpus)];
        Share::Part(Amounts::named(fabric.resources(), counts).unwrap())
    };
    for policy in ["kueue-tas", "first-fit", "best-fit"] {
        let policy = rule(policy);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let mut jobs = Vec::new();
        // The other node has a GPU job and a job of no GPU, which must not be disturbed.
        for (id, node, gpus, disruption) in [
            (0, 0, 8, Disruption::Requeue(10.0)),
            (1, 0, 0, Disruption::Requeue(3.0)),
            (2, 1, 8, Disruption::Requeue(1.0)),
            (3, 1, 0, Disruption::Untouchable),
        ] {
            let placement = Placement::new(&fabric, vec![node], pods(gpus));
            let placement = Arc::new(occupancy.name_gpus(placement));
            occupancy.claim(&placement).unwrap();
            let request = Request { share: pods(gpus), ..Request::whole_nodes(id, 1, 1.0) };
            jobs.push(Job { request, placement, disruption, group: None });
        }
        let request = Request {
            share: pods(4),
            stacked: true,
            within: Within::Required(Level::Tree(0)),
            ..Request::whole_nodes(9, 2, 1.0)
        };
        let effort = RoomEffort::on(occupancy.fabric());
        let plan = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort).unwrap();
        check(&plan, &*policy, &request, &occupancy, &jobs, &[]);
        assert_eq!((plan.requeued, plan.cost, plan.least), (vec![0, 1], 13.0, 13.0));
        assert_eq!(plan.placement.nodes(), [0, 0]);
    }
}

/// Kueue's issue 10815: ten racks of 18 nodes are full, and a job wants 16 nodes of one rack. Jobs of one node are cheapest, but they are scattered over
/// all racks; the nodes freed must lie in one.
#[test]
fn kueue_10815_the_freed_nodes_lie_in_one_rack() {
    let fabric = racks(18, 10);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let mut jobs: Vec<(Vec<NodeIndex>, f64)> = Vec::new();
    for rack in 0..10 {
        let first = 18 * rack;
        // Two nodes are out of service, as there.
        let last = if rack == 4 { first + 16 } else { first + 18 };
        jobs.push(((first..first + 4).collect(), 100.0));
        jobs.push(((first + 4..first + 12).collect(), 150.0 + f64::from(rack)));
        jobs.extend((first + 12..last).map(|node| (vec![node], 1.0)));
    }
    let listed: Vec<(&[NodeIndex], f64)> =
        jobs.iter().map(|(nodes, cost)| (&nodes[..], *cost)).collect();
    let running = running(&mut occupancy, &listed);
    occupancy.set_in_service(18 * 4 + 16, false);
    occupancy.set_in_service(18 * 4 + 17, false);
    let request = Request {
        segment: Some(16),
        segment_level: Some(Level::Domain),
        ..Request::whole_nodes(999, 16, 1.0)
    };
    for policy in ["kueue-tas", "slurm-block", "segments"] {
        let policy = rule(policy);
        let effort = RoomEffort::on(occupancy.fabric());
        let present = present(&running);
        let plan = make_room(&*policy, &request, &mut occupancy, &present, &effort).unwrap();
        check(&plan, &*policy, &request, &occupancy, &running, &[]);
        // A rack without its job of four nodes has 14; so that of eight goes, and the cheapest is that of the first rack.
        assert_eq!((plan.cost, plan.least), (254.0, 254.0), "{}", policy.name());
        let racks: Vec<_> =
            plan.placement.nodes().iter().map(|&node| fabric.domain(node)).collect();
        assert!(racks.iter().all(|&rack| rack == Some(0)), "{racks:?}");
    }
}

/// A job that takes no node that is wanted may still be in the way: it crosses the leaves whose links an isolated job needs.
#[test]
fn links_alone() {
    let mut occupancy = Occupancy::new(tree(&[4, 2]));
    let jobs = running(&mut occupancy, &[(&[0, 4], 7.0), (&[1], 1.0)]);
    let request = Request::whole_nodes(9, 5, 1.0);
    let effort = RoomEffort::on(occupancy.fabric());
    let policy = rule("isolated");
    let plan = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort).unwrap();
    assert_eq!((plan.requeued, plan.cost, plan.least), (vec![0], 7.0, 7.0));
}

/// A job that is moved makes room in a rack, but not on the machine: another rack must have nodes for it. A cheap job that can only be moved is no
/// help if the machine is full; the dear one is requeued.
#[test]
fn moved_jobs_need_nodes_elsewhere() {
    let mut occupancy = Occupancy::new(tree(&[4, 2]));
    let mut jobs = running(&mut occupancy, &[(&[0, 1], 1.0), (&[2], 9.0), (&[4, 5], 5.0)]);
    jobs[0].disruption = Disruption::Move(1.0);
    let policy = rule("kueue-tas");
    let mut ask = |nodes, jobs: &[Job]| {
        let within = Within::Required(Level::Tree(1));
        let request = Request { within, ..Request::whole_nodes(9, nodes, 1.0) };
        let effort = RoomEffort::on(occupancy.fabric());
        let plan = make_room(&*policy, &request, &mut occupancy, &present(jobs), &effort)?;
        check(&plan, &*policy, &request, &occupancy, jobs, &[]);
        let moved = plan.moved.iter().map(|(id, placement)| (*id, placement.nodes().to_vec()));
        Ok::<_, NoRoom>((plan.requeued, moved.collect::<Vec<_>>(), plan.cost))
    };
    // Three nodes of the first rack: job 0 goes to the second.
    assert_eq!(ask(3, &jobs), Ok((vec![], vec![(0, vec![6, 7])], 1.0)));
    // Four need job 1 gone as well, or job 2 alone.
    assert_eq!(ask(4, &jobs), Ok((vec![2], vec![], 5.0)));
    jobs[2].disruption = Disruption::Untouchable;
    assert_eq!(ask(4, &jobs), Ok((vec![1], vec![(0, vec![6, 7])], 10.0)));
    jobs[1].disruption = Disruption::Move(9.0);
    assert_eq!(ask(4, &jobs), Err(NoRoom::Impossible));
}

/// Two pods of two leaves of two nodes. A job in each has a node on both leaves, one with the first uplink of each leaf, the
/// other with the second: what is free has no uplink in common, and four nodes go nowhere. Moved next to the other,
/// either job leaves its pod to them. Without moves there is no room.
#[test]
fn one_move_makes_links_free() {
    let fabric = Arc::new(Fabric::build(&fat_tree(4, 2).unwrap()).unwrap());
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let policy = rule("dedicated");
    let mut jobs = Vec::new();
    for (pod, slot) in [(0, 0), (1, 1)] {
        let request = Request::whole_nodes(u64::from(pod), 2, 1.0);
        let uplink = |leaf| fabric.cable(1, leaf, 0, slot, 0).unwrap();
        let nodes = vec![4 * pod, 4 * pod + 2];
        let placement = Placement::new(&fabric, nodes, Share::Whole).isolated(true);
        let links = vec![uplink(2 * pod), uplink(2 * pod + 1)];
        let placement = Arc::new(placement.with_links(&fabric, links, 1.0));
        occupancy.claim(&placement).unwrap();
        jobs.push(Job { request, placement, disruption: Disruption::Move(2.0), group: Some(0) });
    }
    let request = Request::whole_nodes(9, 4, 1.0);
    let mut ask = |most| {
        let effort = RoomEffort { budgets: vec![most], ..RoomEffort::on(occupancy.fabric()) };
        let plan = make_room(&*policy, &request, &mut occupancy, &present(&jobs), &effort)?;
        check(&plan, &*policy, &request, &occupancy, &jobs, &effort.budgets);
        Ok::<_, NoRoom>(plan)
    };
    assert_eq!(ask(0), Err(NoRoom::Impossible));
    let plan = ask(1).unwrap();
    let (moved, _) = plan.moved[0];
    assert_eq!((plan.moved.len(), plan.cost, plan.least), (1, 2.0, 2.0));
    let pods: Vec<u32> = plan.placement.nodes().iter().map(|&node| fabric.group(2, node)).collect();
    assert!(pods.iter().all(|&pod| u64::from(pod) == moved), "{pods:?}");
}

/// Nothing is proposed where nothing helps: more nodes than there are, or what holds them may not be disturbed. A cost that is none counts as
/// untouchable.
#[test]
fn no_room() {
    let mut occupancy = Occupancy::new(tree(&[4, 2]));
    let mut jobs = running(&mut occupancy, &[(&[0, 1], f64::NAN), (&[2, 3], -1.0), (&[4], 1.0)]);
    let policy = rule("first-fit");
    let mut ask = |nodes, jobs: &[Job]| {
        let request = Request::whole_nodes(9, nodes, 1.0);
        let effort = RoomEffort::on(occupancy.fabric());
        make_room(&*policy, &request, &mut occupancy, &present(jobs), &effort)
    };
    assert_eq!(ask(9, &jobs), Err(NoRoom::Impossible));
    assert_eq!(ask(5, &jobs), Err(NoRoom::Impossible));
    assert_eq!(ask(4, &jobs).unwrap().requeued, [2]);
    jobs[0].disruption = Disruption::Untouchable;
    assert_eq!(ask(5, &jobs), Err(NoRoom::Impossible));
}
