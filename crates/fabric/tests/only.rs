//! A part of a machine is the machine with its other nodes taken away, and nothing else.

use proptest::prelude::*;
use topolane_fabric::read::machine_toml;
use topolane_fabric::{Fabric, MissingCable, NodeSet, pgft};

proptest! {
    /// Nodes keep their order, names and hops. Switches without a node go. Cables missing above a kept node stay
    /// missing.
    #[test]
    fn keeps_names_hops_and_missing_cables(
        wanted in prop::collection::vec(any::<bool>(), 24),
        missing in (0usize..3, 0u32..24),
    ) {
        let mut whole = pgft("m", &[3, 4, 2], &[1, 2, 2], &[1, 1, 2]);
        let (level, group) = missing;
        let group = group % [24, 8, 2][level];
        whole.sites[0].missing.push(MissingCable { level, group, switch: 0, parent: 0, cable: 0 });
        let whole = Fabric::build(&whole).unwrap();
        let kept: Vec<u32> = (0..24).filter(|&node| wanted[node as usize]).collect();
        let part = whole.only(&NodeSet::of(24, kept.iter().copied()));
        if kept.is_empty() {
            prop_assert!(part.is_err());
            return Ok(());
        }
        let part = part.unwrap();
        prop_assert_eq!(part.nodes() as usize, kept.len());
        for (a, &old_a) in kept.iter().enumerate() {
            prop_assert_eq!(part.node_name(a as u32), whole.node_name(old_a));
            for (b, &old_b) in kept.iter().enumerate() {
                prop_assert_eq!(part.hops(a as u32, b as u32), whole.hops(old_a, old_b));
            }
        }
        let has_kept_node = kept.iter().any(|&node| whole.group(level, node) == group);
        prop_assert_eq!(part.missing_cables().len(), usize::from(has_kept_node));
        if let [cable] = part.missing_cables() {
            let (_, new_group, ..) = part.cable_place(*cable).unwrap();
            let old_node = kept[part.node_range(level, new_group).start as usize];
            prop_assert_eq!(whole.group(level, old_node), group);
        }
    }
}

/// If the deepest branches go, so do the levels that were only padding on the others. Cables missing above these levels
/// stay missing.
#[test]
fn a_part_may_be_less_deep() {
    let whole = machine_toml(
        r#"
        name = "uneven"
        [[site]]
        name = "s"
        parents = [1, 2, 3, 2]
        switch = [
          { name = "a", nodes = "a[1-2]" },
          { name = "deep", switches = "a" },
          { name = "pod", switches = "deep" },
          { name = "c", nodes = "c[1-2]" },
          { name = "d", nodes = "d[1-2]" },
          { name = "flat", switches = "c,d" },
          { name = "root", switches = "pod,flat" },
        ]
        missing = [[3, 1, 3, 1, 0], [3, 1, 4, 1, 0], [3, 0, 0, 0, 0], [1, 2, 0, 1, 0]]
        "#,
    );
    let whole = Fabric::build(&whole.unwrap()).unwrap();
    let part = |nodes: std::ops::Range<u32>| whole.only(&NodeSet::of(6, nodes)).unwrap();
    assert_eq!(part(0..6).description(), whole.description());
    assert_eq!(part(0..2).depth(), 4);
    let flat = part(2..6);
    assert_eq!((flat.depth(), flat.is_padded()), (3, false));
    assert_eq!([flat.hops(0, 1), flat.hops(0, 2)], [whole.hops(2, 3), whole.hops(2, 4)]);
    assert_eq!(flat.uplinks(2, 0).len(), 2 * 2, "2 switches of 2 cables each");
    let missing: Vec<_> =
        flat.missing_cables().iter().map(|&id| flat.cable_place(id).unwrap()).collect();
    assert_eq!(missing, [(1, 1, 0, 1, 0), (2, 0, 1, 1, 0)]);
    assert_eq!(part(2..4).depth(), 3);
}
