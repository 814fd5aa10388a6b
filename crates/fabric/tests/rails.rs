//! Rails: adapter number r of every node hangs on rail r. Rails are separate trees, or meet at a joined level.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{
    CrossRail, DedicatedRouting, Description, Direction, Fabric, Fixed, JobLinks, Link,
    MissingCable, NodeIndex, RememberedRoutes, Routing, Rule, Service, SwitchPlace, pgft, read,
    write,
};

/// A machine of two levels with these children, rails, parents and parallel cables above the leaves. `meet` says
/// whether the rails meet there.
fn rails(children: [u32; 2], rails: u32, parents: u32, cables: u32, meet: bool) -> Description {
    let mut machine = pgft("r", &children, &[rails, parents], &[1, cables]);
    machine.sites[0].cabling[1].joined = meet;
    machine
}

fn build(machine: &Description) -> Arc<Fabric> {
    Arc::new(Fabric::build(machine).unwrap())
}

fn any_rails() -> impl Strategy<Value = Description> {
    ((1u32..4, 2u32..4), 1u32..5, 1u32..4, 1u32..3, any::<bool>()).prop_map(
        |((nodes, leaves), r, parents, cables, meet)| {
            rails([nodes, leaves], r, parents, cables, meet && r > 1)
        },
    )
}

fn damaged() -> impl Strategy<Value = Description> {
    let which = prop::collection::vec(any::<prop::sample::Index>(), 0..8);
    (any_rails(), which).prop_map(|(mut machine, which)| {
        let fabric = build(&machine);
        for index in which {
            let id = index.index(fabric.links() as usize) as u32;
            let (level, group, switch, parent, cable) = fabric.cable_place(id).unwrap();
            machine.sites[0].missing.push(MissingCable { level, group, switch, parent, cable });
        }
        machine
    })
}

/// Whether the links lead from one node to the other over existing cables, each link from where the link before it
/// ended.
fn leads(fabric: &Fabric, from: NodeIndex, to: NodeIndex, route: &[Link]) -> bool {
    let names = write::link_names(fabric);
    let mut at = fabric.node_name(from).to_owned();
    let mut fell = false;
    for link in route {
        let name = &names[link.cable as usize];
        let (start, end) = match link.direction {
            Direction::Up => (&name.lower.name, &name.upper.name),
            Direction::Down => (&name.upper.name, &name.lower.name),
        };
        if *start != at || !fabric.has_cable(link.cable) {
            return false;
        }
        if fell && link.direction == Direction::Up {
            return false; // up after down would let packets wait in a circle
        }
        fell |= link.direction == Direction::Down;
        at.clone_from(end);
    }
    at == fabric.node_name(to)
}

/// The rails of a route's first and last link, which are those of its two nodes.
fn ends(fabric: &Fabric, route: &[Link]) -> (u32, u32) {
    let rail = |link: &Link| fabric.cable_place(link.cable).unwrap().3;
    (rail(route.first().unwrap()), rail(route.last().unwrap()))
}

/// Whether any route leads up and then down from one node to another. Looks at all switches that each of them reaches
/// upwards.
fn is_joined(fabric: &Fabric, from: NodeIndex, to: NodeIndex) -> bool {
    let names = write::link_names(fabric);
    let reach = |node: NodeIndex| {
        let mut seen = HashSet::from([fabric.node_name(node)]);
        loop {
            let before = seen.len();
            for (id, link) in (0..).zip(&names) {
                if fabric.has_cable(id) && seen.contains(link.lower.name.as_str()) {
                    seen.insert(&link.upper.name);
                }
            }
            if seen.len() == before {
                return seen;
            }
        }
    };
    !reach(from).is_disjoint(&reach(to))
}

#[test]
fn rails_that_meet_share_the_switches_above() {
    let fabric = build(&rails([4, 3], 2, 3, 2, true));
    assert_eq!((fabric.rails(0), fabric.rails_meet(0)), (2, true));
    assert_eq!(
        (fabric.width(0, 1), fabric.width(0, 2)),
        (2, 3),
        "two leaf switches a group, three spines in all"
    );
    let apart = build(&rails([4, 3], 2, 3, 2, false));
    assert_eq!((apart.rails(0), apart.rails_meet(0)), (2, false));
    assert_eq!(apart.width(0, 2), 6, "every rail has three spines of its own");
    assert_eq!(fabric.links(), apart.links(), "cables are counted from their lower ends");
    let uppers = |fabric: &Fabric| {
        let names = write::link_names(fabric);
        names.iter().map(|link| link.upper.name.clone()).collect::<HashSet<_>>().len()
    };
    assert_eq!((uppers(&fabric), uppers(&apart)), (3 * 2 + 3, 3 * 2 + 6));
    let one = build(&pgft("one", &[2, 2], &[1, 2], &[1, 1]));
    assert_eq!((one.rails(0), one.rails_meet(0)), (1, true));
}

#[test]
fn traffic_of_one_index_takes_its_rail_and_other_traffic_what_the_option_says() {
    let fabric = build(&rails([2, 2], 4, 3, 1, true));
    let route =
        |rails, cross| fabric.rail_route(Rule::DestinationModK, (0, 3), rails, cross).unwrap();
    for rail in 0..4 {
        for cross in [CrossRail::NvLink, CrossRail::Spines] {
            let found = route((rail, rail), cross);
            assert_eq!(ends(&fabric, &found.links), (rail, rail));
            assert!(!found.nvlink_first && !found.nvlink_last);
        }
    }
    let over_nvlink = route((1, 2), CrossRail::NvLink);
    assert_eq!(ends(&fabric, &over_nvlink.links), (2, 2), "on the rail of the destination");
    assert!(over_nvlink.nvlink_first && !over_nvlink.nvlink_last);
    let over_spines = route((1, 2), CrossRail::Spines);
    assert_eq!(ends(&fabric, &over_spines.links), (1, 2));
    assert!(!over_spines.nvlink_first && leads(&fabric, 0, 3, &over_spines.links));
    // Two nodes of one leaf group have no common leaf switch across rails, so the route climbs to a spine.
    let near = fabric.rail_route(Rule::DestinationModK, (0, 1), (0, 3), CrossRail::Spines).unwrap();
    assert_eq!(near.links.len(), 4);
    assert!(leads(&fabric, 0, 1, &near.links));
    let inside =
        fabric.rail_route(Rule::DestinationModK, (0, 0), (0, 3), CrossRail::Spines).unwrap();
    assert!(inside.nvlink_first && inside.links.is_empty());
    assert!(fabric.rail_route(Rule::DestinationModK, (0, 1), (0, 4), CrossRail::Spines).is_none());
}

#[test]
fn a_way_that_is_not_whole_gives_way_to_another() {
    let mut machine = rails([2, 2], 2, 2, 1, true);
    // Node 0 lacks rail 1, and node 3 lacks rail 0.
    for (group, parent) in [(0, 1), (3, 0)] {
        machine.sites[0].missing.push(MissingCable {
            level: 0,
            group,
            switch: 0,
            parent,
            cable: 0,
        });
    }
    let fabric = build(&machine);
    let found =
        fabric.rail_route(Rule::DestinationModK, (0, 2), (0, 1), CrossRail::NvLink).unwrap();
    assert!(
        !found.nvlink_first && found.nvlink_last,
        "node 0 cannot send on rail 1, so node 2 changes rails"
    );
    assert_eq!(ends(&fabric, &found.links), (0, 0));
    let found =
        fabric.rail_route(Rule::DestinationModK, (0, 3), (0, 1), CrossRail::NvLink).unwrap();
    assert_eq!(ends(&fabric, &found.links), (0, 1), "no rail in common: over the spines");
    let found = fabric.route(0, 3).unwrap();
    assert!(leads(&fabric, 0, 3, &found));
    // If rails never meet, only NVLink is left.
    let apart = build(&rails([2, 2], 2, 2, 1, false));
    let found = apart.rail_route(Rule::DestinationModK, (0, 3), (0, 1), CrossRail::Spines).unwrap();
    assert!(found.nvlink_first);
}

#[test]
fn the_tables_reach_every_adapter_by_its_rail() {
    for meet in [true, false] {
        let fabric = build(&rails([2, 3], 3, 2, 2, meet));
        let routes = DedicatedRouting::new(&fabric, &[], &Service::default()).unwrap();
        for to in 0..fabric.nodes() {
            for rail in 0..3 {
                for leaf in 0..3 {
                    for number in 0..3 {
                        let mut at = SwitchPlace { level: 1, group: leaf, number };
                        let mut last = None;
                        while at.level > 0 {
                            let Some(step) = routes.step_on(at, SwitchPlace::node(to), Some(rail))
                            else {
                                break;
                            };
                            last = step.link;
                            at = step.to;
                        }
                        let arrives = meet || number == rail;
                        assert_eq!(
                            at.level == 0,
                            arrives,
                            "leaf {leaf}-s{number} to {to} on rail {rail}"
                        );
                        if arrives {
                            assert_eq!(at.group, to);
                            assert_eq!(fabric.cable_place(last.unwrap().cable).unwrap().3, rail);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_job_needs_links_on_every_rail() {
    let fabric = build(&rails([2, 2], 2, 2, 1, true));
    let uplinks = |switch| (0..2).map(move |leaf| (leaf, switch));
    let cable = |(leaf, switch)| fabric.cable(1, leaf, switch, 0, 0).unwrap();
    let job = |links: Vec<u32>| JobLinks { name: "7".to_owned(), nodes: vec![0, 2], links };
    let both: Vec<u32> = uplinks(0).chain(uplinks(1)).map(cable).collect();
    DedicatedRouting::new(&fabric, &[job(both.clone())], &Service::default()).unwrap();
    let error = DedicatedRouting::new(&fabric, &[job(both[..2].to_vec())], &Service::default())
        .unwrap_err();
    assert!(error.message.contains("job 7: its links do not lead"), "{error}");
}

#[test]
fn impossible_rails_are_refused() {
    for (text, line, words) in [
        (
            "name = \"r\"\n[[site]]\nname = \"s\"\nchildren = [2, 2]\njoined = [true, false]\n",
            5,
            "not nodes",
        ),
        (
            "name = \"r\"\n[[site]]\nname = \"s\"\nchildren = [2, 2]\njoined = [false]\n",
            5,
            "joined has 1 numbers",
        ),
    ] {
        let error = read::machine_toml(text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

proptest! {
    #[test]
    fn routes_lead_to_their_node_wherever_a_way_does(machine in damaged()) {
        let fabric = build(&machine);
        for from in 0..fabric.nodes() {
            for to in 0..fabric.nodes() {
                for rule in [Rule::DestinationModK, Rule::SourceModK, Rule::Random { seed: 1 }] {
                    match fabric.route_by(rule, from, to) {
                        Some(route) => prop_assert!(leads(&fabric, from, to, &route)),
                        None => prop_assert!(!is_joined(&fabric, from, to), "{from} to {to}"),
                    }
                }
            }
        }
    }

    #[test]
    fn tables_lead_to_their_adapter_wherever_they_lead(machine in damaged()) {
        let fabric = build(&machine);
        let routes = DedicatedRouting::new(&fabric, &[], &Service::default()).unwrap();
        for (from, to) in (0..fabric.nodes()).flat_map(|a| (0..fabric.nodes()).map(move |b| (a, b))) {
            for rail in 0..fabric.rails(0) {
                let (mut at, mut links) = (SwitchPlace::node(from), Vec::new());
                while let Some(step) = routes.step_on(at, SwitchPlace::node(to), Some(rail)) {
                    links.extend(step.link);
                    at = step.to;
                    prop_assert!(links.len() <= 4, "a loop");
                }
                if at == SwitchPlace::node(to) && from != to {
                    prop_assert!(leads(&fabric, from, to, &links));
                    prop_assert_eq!(ends(&fabric, &links).1, rail);
                }
            }
        }
    }

    /// Between adapters on one rail, the route begins and ends on this rail, by the rule and by tables.
    #[test]
    fn traffic_stays_on_its_rail(machine in any_rails()) {
        let fabric = build(&machine);
        let tables = || DedicatedRouting::new(&fabric, &[], &Service::default()).unwrap();
        let fixed = Fixed::new(Arc::clone(&fabric), Rule::DestinationModK);
        let routings: [&dyn Routing; 3] = [&fixed, &tables(), &RememberedRoutes::new(tables())];
        for (from, to) in (0..fabric.nodes()).flat_map(|a| (0..fabric.nodes()).map(move |b| (a, b))) {
            for rail in 0..fabric.rails(0) {
                for routing in routings {
                    let mut path = Vec::new();
                    routing.rail_path((from, to), (rail, rail), &mut path).unwrap();
                    let links: Vec<Link> = path.iter().flat_map(|&channel| routing.links(channel)).collect();
                    prop_assert!(leads(&fabric, from, to, &links));
                    if from != to {
                        prop_assert_eq!(ends(&fabric, &links), (rail, rail));
                    }
                }
            }
        }
    }

    #[test]
    fn rails_survive_both_formats(machine in any_rails()) {
        let fabric = build(&machine);
        let toml = read::machine_toml(&write::machine_toml(&fabric)).unwrap();
        prop_assert_eq!(build(&toml).description(), fabric.description());
        let subnet = build(&read::ibnetdiscover(&write::ibnetdiscover(&fabric)).unwrap());
        prop_assert_eq!(subnet.nodes(), fabric.nodes());
        // A single spine above all rails, or a single rail, has the same counts in both descriptions.
        for level in 0..2 {
            let (one, other) = (subnet.cabling(0, level), fabric.cabling(0, level));
            prop_assert_eq!((one.parents, one.cables), (other.parents, other.cables));
        }
        prop_assert_eq!(subnet.rails_meet(0), fabric.rails_meet(0));
        prop_assert_eq!(subnet.missing_cables(), fabric.missing_cables());
    }
}
