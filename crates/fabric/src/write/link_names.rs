//! What to call the links of a fabric.

use super::wiring::Wiring;
use crate::fabric::Fabric;

/// The two ends of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkName {
    /// The lower end, a node or a switch, and the group it is of; the first site of a WAN link.
    pub lower: End,
    /// The upper end; the second site of a WAN link.
    pub upper: End,
    /// Which of the parallel cables between the two, from 0; `None` where there is only one.
    pub number: Option<u32>,
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Name of the node or switch; parallel switches without names are `{group}-s{number}`.
    pub name: String,
    /// Name of the group; a node's own name.
    pub group: String,
}

/// The ends of every link by its id, missing cables included.
pub fn link_names(fabric: &Fabric) -> Vec<LinkName> {
    let mut names = Vec::with_capacity(fabric.links() as usize);
    Wiring::each_bundle(fabric, |lower, upper, cables| {
        let end = |(name, group): (&str, &str)| End { name: name.into(), group: group.into() };
        names.extend((0..cables).map(|cable| LinkName {
            lower: end(lower),
            upper: end(upper),
            number: (cables > 1).then_some(cable),
        }));
    });
    for (_, (a, b), _, _) in fabric.wans() {
        let end = |site| {
            let name = fabric.group_name(fabric.depth(), site).to_owned();
            End { name: name.clone(), group: name }
        };
        names.push(LinkName { lower: end(a), upper: end(b), number: None });
    }
    names
}
