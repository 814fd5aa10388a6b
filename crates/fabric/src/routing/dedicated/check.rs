//! Checks the jobs for which tables are to be made.

use super::{JobLinks, Service};
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, GroupIndex};

/// Refuses, by name, jobs for which no tables can be made.
pub(super) fn jobs(
    fabric: &Fabric,
    jobs: &[JobLinks],
    service: &Service,
) -> Result<(), InputError> {
    if let Some(node) = service.nodes.iter().find(|&&node| node >= fabric.nodes()) {
        return Err(InputError::whole(format!(
            "service node {node} is not among the {} nodes",
            fabric.nodes()
        )));
    }
    let mut node_of: Vec<Option<&JobLinks>> = vec![None; fabric.nodes() as usize];
    let mut link_of: Vec<Option<&JobLinks>> = vec![None; fabric.links() as usize];
    for job in jobs {
        for &node in &job.nodes {
            let Some(holder) = node_of.get_mut(node as usize) else {
                let what = format!("node {node} is not among the {} nodes", fabric.nodes());
                return Err(refused(job, &what));
            };
            // Entries are by destination, so they cannot separate two jobs on the same node.
            match holder.replace(job) {
                Some(other) if !(other.links.is_empty() && job.links.is_empty()) => {
                    let name = fabric.node_name(node);
                    let what = if std::ptr::eq(other, job) {
                        format!("node {name} stands twice")
                    } else {
                        format!("node {name} is job {}'s too", other.name)
                    };
                    return Err(refused(job, &what));
                }
                _ => {}
            }
        }
        for &link in &job.links {
            check_link(fabric, job, link, service.uplinks)?;
            if let Some(other) = link_of[link as usize].replace(job) {
                let what = if std::ptr::eq(other, job) {
                    format!("{} stands twice", named(fabric, link))
                } else {
                    format!("{} is job {}'s too", named(fabric, link), other.name)
                };
                return Err(refused(job, &what));
            }
        }
    }
    Ok(())
}

fn check_link(
    fabric: &Fabric,
    job: &JobLinks,
    link: CableId,
    reserved: u32,
) -> Result<(), InputError> {
    if link >= fabric.links() {
        let what = format!("cable {link} is not among the {} links", fabric.links());
        return Err(refused(job, &what));
    }
    let Some((level, group, _, parent, cable)) = fabric.cable_place(link).filter(|at| at.0 > 0)
    else {
        let what = format!("{} does not join a switch to another", named(fabric, link));
        return Err(refused(job, &what));
    };
    if !fabric.has_cable(link) {
        return Err(refused(job, &format!("{} is missing", named(fabric, link))));
    }
    let below = fabric.node_range(level, group);
    if !job.nodes.iter().any(|node| below.contains(node)) {
        let what = format!("none of its nodes is below {}", named(fabric, link));
        return Err(refused(job, &what));
    }
    if is_reserved(fabric, (level, group, parent, cable), reserved) {
        let what = format!("{} is reserved for service nodes", named(fabric, link));
        return Err(refused(job, &what));
    }
    Ok(())
}

/// Whether a cable is in one of the `reserved` highest uplink slots of its switch. It is given by level, group, parent
/// and number among parallel cables.
fn is_reserved(
    fabric: &Fabric,
    (level, group, parent, cable): (usize, GroupIndex, u32, u32),
    reserved: u32,
) -> bool {
    let cabling = fabric.cabling(fabric.site_of_group(level, group), level);
    let slot = parent * cabling.cables + cable;
    slot.saturating_add(reserved) >= cabling.parents * cabling.cables
}

/// The cables in the `reserved` highest uplink slots of their switches, ascending.
pub(super) fn reserved(fabric: &Fabric, reserved: u32) -> Vec<CableId> {
    let is_one = |&link: &CableId| match fabric.cable_place(link) {
        Some((level, group, _, parent, cable)) if level > 0 && fabric.has_cable(link) => {
            is_reserved(fabric, (level, group, parent, cable), reserved)
        }
        _ => false,
    };
    (0..fabric.links()).filter(is_one).collect()
}

fn refused(job: &JobLinks, what: &str) -> InputError {
    InputError::whole(format!("job {}: {what}", job.name))
}

fn named(fabric: &Fabric, link: CableId) -> String {
    match fabric.cable_place(link) {
        Some((0, node, ..)) => format!("cable {link} (of node {})", fabric.node_name(node)),
        Some((level, group, ..)) => {
            format!("cable {link} (an uplink of {})", fabric.group_name(level, group))
        }
        None => format!("cable {link} (a WAN link)"),
    }
}
