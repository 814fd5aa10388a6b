//! Sets of nodes with a faster network between them: read, queried, cut down and refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use topolane_fabric::read::machine_toml;
use topolane_fabric::{Fabric, NodeSet};

/// Six nodes on two leaves, with these domains.
fn machine(domains: &str) -> String {
    format!("name = \"n\"\n[[site]]\nname = \"s\"\nchildren = [3, 2]\n{domains}")
}

const TWO: &str = "[[domain]]\nname = \"a\"\nnodes = \"n[1,4]\"\n\
                   [[domain]]\nname = \"b\"\nnodes = \"n[5,2,3]\"\nbandwidth = 1e12\n";

/// A domain is a set of nodes, whatever the tree says. The numbers of its nodes ascend.
#[test]
fn nodes_know_their_domain() {
    let fabric = Fabric::build(&machine_toml(&machine(TWO)).unwrap()).unwrap();
    assert_eq!(fabric.domains(), 2);
    let of: Vec<_> = (0..6).map(|node| fabric.domain(node)).collect();
    assert_eq!(of, [Some(0), Some(1), Some(1), Some(0), Some(1), None]);
    assert_eq!([fabric.domain_nodes(0), fabric.domain_nodes(1)], [&[0, 3][..], &[1, 2, 4]]);
    assert_eq!((fabric.domain_name(1), fabric.domain_bandwidth(1)), ("b", 1e12));
    assert_eq!(fabric.hops(0, 3), Some(0), "in one domain, which spans two leaves");
    assert_eq!(fabric.hops(0, 4), Some(2), "in two domains: hops are those of the tree");
    assert!(fabric.share_domain(0, 3) && !fabric.share_domain(0, 1) && !fabric.share_domain(5, 5));
    assert!(fabric.lie_in_one_domain(&[1, 2, 4]) && !fabric.lie_in_one_domain(&[1, 2, 5]));
    assert!(fabric.domains_span_leaves());
    let none = Fabric::build(&machine_toml(&machine("")).unwrap()).unwrap();
    assert_eq!((none.domains(), none.domain(0)), (0, None));
}

/// Every node is in one block: its domain, or else the nodes of its leaf that are in no domain.
#[test]
fn blocks_are_the_domains_and_the_rest_of_each_leaf() {
    let fabric = Fabric::build(&machine_toml(&machine(TWO)).unwrap()).unwrap();
    let blocks: Vec<_> = (0..fabric.blocks()).map(|block| fabric.block_nodes(block)).collect();
    assert_eq!(blocks, [&[0, 3][..], &[1, 2, 4], &[5]]);
    assert_eq!((fabric.block(4), fabric.block(5), fabric.largest_block()), (1, 2, 3));
    let none = Fabric::build(&machine_toml(&machine("")).unwrap()).unwrap();
    let blocks: Vec<_> = (0..none.blocks()).map(|block| none.block_nodes(block)).collect();
    assert_eq!(blocks, [&[0, 1, 2][..], &[3, 4, 5]], "without domains the leaves");
}

/// Without block sizes, the base block is the first domain, unless a later one has fewer nodes. Without domains too, it
/// is the largest leaf.
#[test]
fn the_base_block_is_named_or_the_first_domain() {
    let base = |domains: &str| {
        Fabric::build(&machine_toml(&machine(domains)).unwrap()).unwrap().base_block()
    };
    assert_eq!(base(TWO), 2, "of 2 and 3 nodes");
    let (small, large) = TWO.split_at(TWO.find("[[domain]]\nname = \"b\"").unwrap());
    assert_eq!(base(&format!("{large}{small}")), 3, "of 3 and 2 nodes");
    assert_eq!(base(""), 3);
}

/// A part of a machine has the domains of its nodes. Domains without a node are gone.
#[test]
fn a_part_keeps_its_domains() {
    let whole = Fabric::build(&machine_toml(&machine(TWO)).unwrap()).unwrap();
    let part = whole.only(&NodeSet::of(6, [1, 4, 5])).unwrap();
    assert_eq!((part.domains(), part.domain_name(0)), (1, "b"));
    assert_eq!(
        part.domain_nodes(0).iter().map(|&n| part.node_name(n)).collect::<Vec<_>>(),
        ["n2", "n5"]
    );
    assert_eq!(part.domain(2), None);
}

/// Block sizes are the base block and power-of-two multiples of it. They are written back, and are gone when the last
/// domain is.
#[test]
fn block_sizes_are_multiples_of_the_base_block() {
    let sized = |sizes: &str| format!("block-sizes = {sizes}\n{}", machine(TWO));
    let fabric = Fabric::build(&machine_toml(&sized("[1, 2, 8]")).unwrap()).unwrap();
    assert_eq!(fabric.block_sizes(), [1, 2, 8]);
    let again = machine_toml(&topolane_fabric::write::machine_toml(&fabric)).unwrap();
    assert_eq!(again, fabric.description());
    assert!(fabric.only(&NodeSet::of(6, [5])).unwrap().block_sizes().is_empty());
    for (sizes, words) in [
        ("[0]", "block size 0 is not above 0"),
        ("[2, 1]", "1 does not follow 2"),
        ("[18, 54]", "54 is not the base block of 18 nodes times a power of two"),
        ("[1, 65536]", "65536 is not the base block of 1 nodes"),
    ] {
        let error = machine_toml(&sized(sizes)).expect_err(sizes);
        assert_eq!(error.line, 1, "{error}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
    let error =
        machine_toml(&format!("block-sizes = [4]\n{}", machine(""))).expect_err("no domain");
    assert!(error.to_string().contains("no [[domain]]"), "{error}");
    let mut description = machine_toml(&machine("")).unwrap();
    description.block_sizes = vec![4];
    assert!(Fabric::build(&description).unwrap_err().message.contains("there is no domain"));
}

/// Every error names the line and the value.
#[test]
fn bad_domains_are_refused() {
    for (domains, line, words) in [
        ("[[domain]]\nname = \"a\"\nnodes = \"n7\"", 7, "names node \"n7\", which is not there"),
        ("[[domain]]\nname = \"a\"\nnodes = \"\"", 7, "no nodes"),
        (
            "[[domain]]\nname = \"a\"\nnodes = \"n[1-2]\"\n[[domain]]\nname = \"b\"\nnodes = \"n2\"",
            10,
            "names node \"n2\", which is in a domain of line 7 already",
        ),
        ("[[domain]]\nname = \"a\"\nnodes = \"n[1,1]\"", 7, "n1"),
        (
            "[[domain]]\nname = \"a\"\nnodes = \"n1\"\n[[domain]]\nname = \"a\"\nnodes = \"n2\"",
            9,
            "stands on line 6 already",
        ),
        (
            "[[domain]]\nname = \"a\"\nnodes = \"n1\"\nbandwidth = 0.0",
            6,
            "bandwidth above 0, not 0",
        ),
    ] {
        let error = machine_toml(&machine(domains)).expect_err(domains);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
}

/// Domains nest in the tree if each lies in one group, and no group below that one lies in two domains. They are a
/// level if each is a group.
#[test]
fn domains_may_nest_in_the_tree() {
    let levels = |domains: &str| {
        let fabric = Fabric::build(&machine_toml(&machine(domains)).unwrap()).unwrap();
        (fabric.level_above_domains(), fabric.level_of_domains())
    };
    let domain = |name: &str, nodes: &str| {
        format!("[[domain]]\nname = \"{name}\"\nnodes = \"{nodes}\"\nbandwidth = 1e12\n")
    };
    assert_eq!(levels(""), (None, None));
    assert_eq!(levels(TWO), (None, None), "they lie across leaves");
    assert_eq!(levels(&(domain("a", "n[1-3]") + &domain("b", "n[4-6]"))), (Some(1), Some(1)));
    assert_eq!(levels(&(domain("a", "n[1-2]") + &domain("b", "n[4-6]"))), (Some(1), None));
    assert_eq!(levels(&domain("a", "n[1-6]")), (Some(2), Some(2)));
}
