//! Names the links of a fabric.

use super::wiring::Wiring;
use crate::description::SwitchCable;
use crate::error::{InputError, shown};
use crate::fabric::Fabric;
use crate::ids::CableId;

/// The two ends of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkName {
    /// The lower end, a node or switch, with its group; for a WAN link, the first site.
    pub lower: LinkEnd,
    /// The upper end; for a WAN link, the second site.
    pub upper: LinkEnd,
    /// The number of the cable among parallel ones, from 0; `None` if there is only one.
    pub number: Option<u32>,
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEnd {
    /// The name of the node or switch; parallel switches without names are called `{group}-s{number}`.
    pub name: String,
    /// The name of the group; for a node, its own name.
    pub group: String,
}

/// The ends of every link, by id, including missing cables.
pub fn link_names(fabric: &Fabric) -> Vec<LinkName> {
    let mut names = Vec::with_capacity(fabric.links() as usize);
    Wiring::each_bundle(fabric, |lower, upper, cables| {
        let end = |(name, group): (&str, &str)| LinkEnd { name: name.into(), group: group.into() };
        names.extend((0..cables).map(|cable| LinkName {
            lower: end(lower),
            upper: end(upper),
            number: (cables > 1).then_some(cable),
        }));
    });
    if !fabric.wiring().is_tree() {
        // Above the nodes, the hierarchy has no cables.
        names.truncate(fabric.uplinks(0, fabric.nodes() - 1).end as usize);
        while let Some(SwitchCable { between: (a, b), count, .. }) =
            fabric.wired_cable(names.len() as CableId)
        {
            let end = |switch| {
                let name = fabric.wiring().switch_name(switch).to_owned();
                LinkEnd { name: name.clone(), group: name }
            };
            names.extend((0..count).map(|cable| LinkName {
                lower: end(a),
                upper: end(b),
                number: (count > 1).then_some(cable),
            }));
        }
    }
    for (_, (a, b), _, _) in fabric.wans() {
        let end = |site| {
            let name = fabric.group_name(fabric.depth(), site).to_owned();
            LinkEnd { name: name.clone(), group: name }
        };
        names.push(LinkName { lower: end(a), upper: end(b), number: None });
    }
    names
}

impl LinkName {
    /// Whether `text` names the link, from either end: `leaf0->pod0-s1`, followed by `#1` for one of several parallel
    /// cables.
    fn is_called(&self, text: &str) -> bool {
        let (ends, number) = match text.rsplit_once('#') {
            Some((ends, number)) if number.parse().ok() == self.number => (ends, true),
            _ => (text, false),
        };
        let joins = |text: &str| {
            text.split_once("->").is_some_and(|(from, to)| {
                let (lower, upper) = (&self.lower.name, &self.upper.name);
                (from == lower && to == upper) || (from == upper && to == lower)
            })
        };
        joins(text) || (number && joins(ends))
    }
}

/// The cables that `text` names. It may be a link by its ends, `leaf0->pod0-s1` (with `#1` for one of several parallel
/// cables, otherwise all of them), a cable by its id, or a switch or node by its name, for all its cables.
///
/// # Errors
/// The machine has nothing with this name, or it stands for several parallel switches.
pub fn cables_named(
    fabric: &Fabric,
    names: &[LinkName],
    text: &str,
) -> Result<Vec<CableId>, InputError> {
    let there = |id: &CableId| fabric.cable_place(*id).is_some() && fabric.has_cable(*id);
    if let Some(id) = text.parse().ok().filter(there) {
        return Ok(vec![id]);
    }
    let select = |is_meant: &dyn Fn(&LinkName) -> bool| -> Vec<CableId> {
        let numbered = (0..).zip(names).filter(|(_, link)| is_meant(link));
        numbered.map(|(id, _)| id).filter(there).collect()
    };
    let is_meant = |link: &LinkName| {
        link.is_called(text) || link.lower.name == text || link.upper.name == text
    };
    let found = select(&is_meant);
    // A cable between switches of other wirings cannot be missing or fail so far, so a switch would keep some.
    let all = names.iter().filter(|link| is_meant(link)).count();
    if !fabric.wiring().is_tree() && found.len() < all {
        let (name, kind) = (fabric.name(), fabric.wiring().name());
        return Err(InputError::whole(format!(
            "{} has cables between switches, but {name} is a {kind}, of which only cables of nodes can fail so far",
            shown(text)
        )));
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let of_group = |end: &LinkEnd| end.group == text;
    let one_of = names.iter().flat_map(|link| [&link.lower, &link.upper]).find(|end| of_group(end));
    Err(InputError::whole(match one_of {
        Some(end) => {
            format!("{} is several parallel switches: name one, such as {}", shown(text), end.name)
        }
        None => format!(
            "machine {} has no link, switch or node {} that a cable leads to (a link is named as \
             `topolane links` does, leaf0->pod0-s1, or by its id)",
            fabric.name(),
            shown(text)
        ),
    }))
}
