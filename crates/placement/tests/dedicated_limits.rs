//! Machines where jobs cannot own links in some parts: these parts are named, the others still work.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use topolane_fabric::{Fabric, read};
use topolane_placement::dedicated::{LimitKind, check};
use topolane_placement::{Occupancy, Refusal, Request, policy};

const RULES: [&str; 4] = ["dedicated", "jigsaw", "jigsaw-relaxed", "laas"];

/// A machine with nodes n1, n2, ... from the text of its only site, `core`.
fn machine(site: &str) -> Arc<Fabric> {
    let text = format!("name = \"odd\"\n[[site]]\nname = \"core\"\n{site}");
    Arc::new(Fabric::build(&read::machine_toml(&text).unwrap()).unwrap())
}

/// A tree of switches, each given as name, nodes, switches below.
fn tree(parents: &str, switches: &[(&str, &str, &str)]) -> Arc<Fabric> {
    let switch = |&(name, nodes, below): &(&str, &str, &str)| {
        let what = if nodes.is_empty() { ("switches", below) } else { ("nodes", nodes) };
        format!("[[site.switch]]\nname = \"{name}\"\n{} = \"{}\"\n", what.0, what.1)
    };
    let switches: String = switches.iter().map(switch).collect();
    machine(&format!("parents = {parents}\n{switches}"))
}

/// The sentences about the limits of a machine.
fn said(fabric: &Arc<Fabric>) -> Vec<String> {
    let limits = policy("dedicated", 0).unwrap().limits(fabric);
    limits.iter().map(|limit| limit.sentence(fabric)).collect()
}

/// On the empty machine, jobs of up to `most` nodes get links that meet the condition, and wider ones are refused for
/// this reason.
fn isolates_up_to(fabric: &Arc<Fabric>, rule: &str, most: u32, why: LimitKind) {
    let occupancy = Occupancy::new(Arc::clone(fabric));
    let rule = policy(rule, 0).unwrap();
    for wanted in 1..=fabric.nodes() {
        let request = Request::whole_nodes(1, wanted, 1.0);
        let never = rule.never(&request, &occupancy);
        if let Ok(job) = rule.place(&request, &occupancy) {
            assert!(wanted <= most, "{wanted} nodes on {} by {}", fabric.name(), rule.name());
            if !job.crossed().is_empty() {
                assert_eq!(check(fabric, job.nodes(), job.links(), job.bandwidth_share()), Ok(()));
            }
            assert_eq!(never, None);
        } else {
            assert!(wanted > most, "{wanted} nodes refused by {}", rule.name());
            let all = fabric.nodes();
            assert_eq!(never, Some(Refusal::CannotIsolate { wanted, most: all, why }));
        }
    }
}

/// With more than 64 uplinks per leaf, jobs stay inside a leaf; with more than 64 per second-level switch, inside a
/// pod.
#[test]
fn switches_with_many_uplinks() {
    let leaves = machine("children = [8, 2, 2]\nparents = [1, 72, 1]");
    assert_eq!(
        said(&leaves),
        [
            "switches of leaf0, leaf1, leaf2 and 1 more have 72 uplinks, more than 64: a job that owns links and has \
          nodes there stays inside one of them"
        ]
    );
    let pods = machine("children = [4, 2, 2]\nparents = [1, 4, 72]");
    assert_eq!(
        said(&pods),
        [
            "switches of pod0 and pod1 have 72 uplinks, more than 64: a job that owns links and has nodes there stays \
          inside one of them"
        ]
    );
    for rule in RULES {
        isolates_up_to(&leaves, rule, 8, LimitKind::Uplinks);
        isolates_up_to(&pods, rule, 8, LimitKind::Uplinks);
    }
}

/// On four levels, jobs stay inside a group of the third.
#[test]
fn four_levels() {
    let fabric = machine("children = [2, 2, 2, 2]\nparents = [1, 2, 2, 2]");
    let said = said(&fabric);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("three levels above: a job that owns links and has nodes there stays"),
        "{said:?}"
    );
    isolates_up_to(&fabric, "dedicated", 8, LimitKind::Levels);
}

/// If rails meet in the spines of a pod, jobs stay inside a pod, because no rail has links of its own above. Rails that
/// meet in the core, or never, are no limit.
#[test]
fn rails() {
    let fabric =
        machine("children = [4, 2, 2]\nparents = [2, 4, 4]\njoined = [false, true, false]");
    let says = "pod0 and pod1 have switches that all rails share: a job that owns links and has nodes there stays inside \
                one of them";
    assert_eq!(said(&fabric), [says]);
    for rule in RULES {
        isolates_up_to(&fabric, rule, 8, LimitKind::RailsMeet);
    }
    for joined in ["[false, false, false]", "[false, false, true]"] {
        let fabric =
            machine(&format!("children = [4, 2, 2]\nparents = [2, 4, 4]\njoined = {joined}"));
        assert_eq!(said(&fabric), [""; 0]);
        for rule in RULES {
            isolates_up_to(&fabric, rule, 16, LimitKind::Shape);
        }
    }
}

/// Jobs with nodes on a leaf that is directly below the core stay inside it; other pods are unaffected.
#[test]
fn a_short_branch() {
    let fabric = tree(
        "[1, 2, 2]",
        &[
            ("a", "n[1-2]", ""),
            ("b", "n[3-4]", ""),
            ("c", "n[5-6]", ""),
            ("p", "", "a,b"),
            ("core", "", "p,c"),
        ],
    );
    assert_eq!(
        said(&fabric),
        [
            "c is a branch shorter than others: a job that owns links and has nodes there stays inside it"
        ]
    );
    for rule in RULES {
        isolates_up_to(&fabric, rule, 4, LimitKind::ShortBranch);
    }
}

/// A missing cable, a missing second-level switch and a leaf without cables are named, and all other jobs are placed.
#[test]
fn missing_cables() {
    let tree = |missing: &str| {
        machine(&format!("children = [4, 2, 2]\nparents = [1, 4, 4]\nmissing = [{missing}]"))
    };
    let one = tree("[1, 0, 0, 1, 0]");
    assert_eq!(
        said(&one),
        [
            "leaf0 has 1 of 4 uplinks missing: jobs own those that are there, and nodes may lack links"
        ]
    );
    isolates_up_to(&one, "dedicated", 15, LimitKind::Missing);
    let switch = tree("[1,0,0,3,0],[1,1,0,3,0],[2,0,3,0,0],[2,0,3,1,0],[2,0,3,2,0],[2,0,3,3,0]");
    assert_eq!(
        said(&switch),
        [
            "pod0 has 4 of 16 uplinks missing: jobs own those that are there, and nodes may lack links",
            "leaf0 and leaf1 have 2 of 8 uplinks missing: jobs own those that are there, and nodes may lack links",
        ]
    );
    isolates_up_to(&switch, "dedicated", 12, LimitKind::Missing);
    let cut = tree("[1,0,0,0,0],[1,0,0,1,0],[1,0,0,2,0],[1,0,0,3,0]");
    assert_eq!(
        said(&cut),
        ["no cable leaves leaf0: a job that owns links and has nodes there stays inside it"]
    );
    let occupancy = Occupancy::new(Arc::clone(&cut));
    for rule in RULES.iter().chain(&["isolated", "quiet-neighborhoods", "first-fit", "hop-bytes"]) {
        let rule = policy(rule, 0).unwrap();
        for wanted in 1..=16 {
            let request = Request::whole_nodes(1, wanted, 1.0);
            let placed = rule.place(&request, &occupancy);
            let is_apart = |job: &topolane_placement::Placement| {
                job.nodes().iter().all(|&node| node < 4)
                    || job.nodes().iter().all(|&node| node >= 4)
            };
            assert_eq!(placed.as_ref().is_ok_and(is_apart), wanted <= 12, "{}", rule.name());
            let never = (wanted > 12).then_some(Refusal::Never { wanted, most: 12 });
            assert_eq!(rule.never(&request, &occupancy), never);
        }
    }
}

/// If some leaves give their nodes less bandwidth than others, the smallest counts as full bandwidth for all, and a
/// sentence says so.
#[test]
fn uneven_taper() {
    let fabric = tree(
        "[1, 2]",
        &[("a", "n[1-4]", ""), ("b", "n[5-24]", ""), ("c", "n[25-28]", ""), ("core", "", "a,b,c")],
    );
    assert_eq!(
        said(&fabric),
        [
            "full bandwidth is 0.100 of a node's own for every job, since b has no more above; other groups of that level \
          have up to 0.500"
        ]
    );
    isolates_up_to(&fabric, "dedicated", 28, LimitKind::Shape);
}

/// There are no sentences for a complete tree, full or evenly oversubscribed, nor for a policy that owns whole groups.
#[test]
fn whole_trees() {
    for site in [
        "children = [4, 4, 4]\nparents = [1, 4, 4]",
        "children = [4, 4, 4]\nparents = [1, 2, 2]",
        "children = [8]",
        "children = [8, 4]\nparents = [1, 8]",
    ] {
        assert_eq!(said(&machine(site)), [""; 0]);
    }
    let wide = machine("children = [4, 2, 2]\nparents = [1, 4, 72]");
    for rule in ["isolated", "quiet-neighborhoods", "first-fit"] {
        assert!(policy(rule, 0).unwrap().limits(&wide).is_empty());
    }
}
