//! Sorts the cables of one level of a site into bundles, and gives each cable its position in the cabling.

use std::collections::BTreeMap;

use super::levels::SubnetUplink;
use super::planes::Planes;

/// The cables up from one level, by lower switch and parent number.
pub(super) struct Bundles<'a> {
    links: BTreeMap<(usize, usize), Vec<&'a SubnetUplink>>,
    /// The number of parallel cables of a complete bundle.
    pub cables: usize,
    /// For each parent, the lower ports that usually lead to it.
    usual: Vec<Vec<u32>>,
}

impl<'a> Bundles<'a> {
    /// Collects the bundles of `uplinks`, which lead to the planes `above`.
    pub(super) fn of(uplinks: &[&'a SubnetUplink], above: &Planes) -> Bundles<'a> {
        let mut links: BTreeMap<(usize, usize), Vec<&SubnetUplink>> = BTreeMap::new();
        for link in uplinks {
            let parent = above.of[&link.upper.vertex] % above.parents;
            links.entry((link.lower.vertex, parent)).or_default().push(link);
        }
        for bundle in links.values_mut() {
            bundle.sort_unstable_by_key(|link| link.lower.port);
        }
        let cables = links.values().map(Vec::len).max().unwrap_or(1);
        let usual = usual_ports(&links, above.parents, cables);
        Bundles { links, cables, usual }
    }

    /// The cables from a switch to one of its parents, each with its number among the parallel ones. The number follows
    /// from the port, if other switches use the same ports in order.
    pub(super) fn numbered(
        &self,
        vertex: usize,
        parent: usize,
    ) -> impl Iterator<Item = (usize, &'a SubnetUplink)> + '_ {
        let links = self.links.get(&(vertex, parent)).map_or(&[][..], Vec::as_slice);
        let usual = &self.usual[parent];
        let number = |link: &&SubnetUplink| usual.iter().position(|&port| port == link.lower.port);
        let by_port: Option<Vec<usize>> = links.iter().map(number).collect();
        let numbers = by_port.unwrap_or_else(|| (0..links.len()).collect());
        numbers.into_iter().zip(links.iter().copied())
    }
}

/// The ports that lead to each parent: those of most complete bundles. If no bundle is complete, all ports in use, if
/// together they give a complete one.
fn usual_ports(
    links: &BTreeMap<(usize, usize), Vec<&SubnetUplink>>,
    parents: usize,
    cables: usize,
) -> Vec<Vec<u32>> {
    let mut whole: Vec<BTreeMap<Vec<u32>, usize>> = vec![BTreeMap::new(); parents];
    let mut any: Vec<Vec<u32>> = vec![Vec::new(); parents];
    for (&(_, parent), bundle) in links {
        let ports = bundle.iter().map(|link| link.lower.port);
        if bundle.len() == cables {
            *whole[parent].entry(ports.collect()).or_default() += 1;
        } else {
            any[parent].extend(ports);
        }
    }
    let usual = |(whole, mut any): (BTreeMap<Vec<u32>, usize>, Vec<u32>)| {
        any.sort_unstable();
        any.dedup();
        any.truncate(cables);
        whole.into_iter().max_by_key(|&(_, count)| count).map_or(any, |(ports, _)| ports)
    };
    whole.into_iter().zip(any).map(usual).collect()
}
