//! A part of a machine is the machine with its other nodes taken away, and nothing else.

use proptest::prelude::*;
use topolane_fabric::{Fabric, MissingCable, NodeSet, pgft};

proptest! {
    /// Nodes keep their order, names and hops; switches without a node go; what is missing above
    /// a kept node stays missing.
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
