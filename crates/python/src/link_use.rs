//! Finds the jobs that may share links, for Python.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::Fabric;
use topolane_placement::{Holder, Placement, Share, crossed_groups};
use topolane_simulator::PlacementStay;

use crate::answering::answering;
use crate::error::bad_input;
use crate::machine::Machine;

/// The jobs that may use the uplinks of each group at one moment. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct LinkUse {
    /// The number of links that two or more jobs may use.
    #[pyo3(get)]
    shared: u32,
    meetings: HashMap<u64, Vec<(String, Vec<u64>)>>,
}

#[pymethods]
impl LinkUse {
    /// Collects the link use of jobs, each given as (id, nodes, cables between switches that it owns).
    #[new]
    fn new(machine: &Machine, jobs: Vec<(u64, Vec<u32>, Vec<u32>)>) -> PyResult<Self> {
        let fabric = &machine.fabric;
        let jobs =
            jobs.into_iter().map(|(id, nodes, links)| Ok((id, placed(fabric, nodes, links)?)));
        let jobs = jobs.collect::<PyResult<Vec<(u64, Placement)>>>()?;
        let holders: Vec<Holder<'_>> =
            jobs.iter().map(|(id, placement)| (*id, placement)).collect();
        let link_use = topolane_placement::LinkUse::of(fabric, &holders);
        let named = |((level, group), others): ((u8, u32), Vec<u64>)| {
            (fabric.group_name(usize::from(level), group).to_owned(), others)
        };
        let meetings = link_use.meetings().into_iter().zip(&holders);
        let meetings =
            meetings.map(|(met, &(id, _))| (id, met.into_iter().map(named).collect())).collect();
        Ok(LinkUse { shared: link_use.shared(), meetings })
    }

    /// The groups whose uplinks a job may use, from the leaves up, with the other jobs that may use the same links.
    fn meetings(&self, job: u64) -> Vec<(String, Vec<u64>)> {
        self.meetings.get(&job).cloned().unwrap_or_default()
    }
}

/// A stay: job, from, until, nodes, cables that it owns.
type StayRow = (usize, f64, f64, Vec<u32>, Vec<u32>);

/// The number of links that each job may have shared. `stays` are (job, from, until, nodes, cables that it owns), in
/// order of their beginning; jobs are numbered from 0. A job with several stays gets the sum.
#[pyfunction]
pub fn links_shared(py: Python<'_>, machine: &Machine, stays: Vec<StayRow>) -> PyResult<Vec<u32>> {
    let fabric = Arc::clone(&machine.fabric);
    let stays = stays.into_iter().map(|(job, from, until, nodes, links)| {
        Ok((job, from, until, placed(&fabric, nodes, links)?))
    });
    let stays = stays.collect::<PyResult<Vec<_>>>()?;
    let jobs = stays.iter().map(|&(job, ..)| job + 1).max().unwrap_or(0);
    answering(py, move || {
        let mut stays: Vec<PlacementStay<'_>> = stays
            .iter()
            .map(|(job, from, until, placement)| PlacementStay {
                job: *job,
                from: *from,
                until: *until,
                placement,
            })
            .collect();
        stays.retain(|stay| stay.until > stay.from);
        stays.sort_by(|one, other| one.from.total_cmp(&other.from));
        topolane_simulator::links_shared(&fabric, jobs, stays)
    })
}

/// The jobs that cross each group of a tree, by level from the leaves, in the order given. `levels` has the first node
/// of every group; a job is (id, half-open ranges of its nodes).
#[pyfunction]
pub fn crossings(
    nodes: u32,
    levels: Vec<Vec<u32>>,
    jobs: Vec<(u64, Vec<(u32, u32)>)>,
) -> PyResult<Vec<Vec<Vec<u64>>>> {
    let mut crossing: Vec<Vec<Vec<u64>>> =
        levels.iter().map(|starts| vec![Vec::new(); starts.len()]).collect();
    let group = |level: usize, node| {
        levels[level - 1].partition_point(|&start| start <= node).saturating_sub(1) as u32
    };
    for (id, ranges) in jobs {
        let held: Vec<u32> = ranges.iter().flat_map(|&(start, end)| start..end).collect();
        if let Some(node) = held.iter().find(|&&node| node >= nodes) {
            return Err(bad_input(format!("job {id}: node {node} is not among the {nodes}")));
        }
        for (level, group) in crossed_groups(levels.len(), group, &held) {
            crossing[usize::from(level) - 1][group as usize].push(id);
        }
    }
    Ok(crossing)
}

fn placed(fabric: &Arc<Fabric>, nodes: Vec<u32>, links: Vec<u32>) -> PyResult<Placement> {
    if let Some(node) = nodes.iter().find(|&&node| node >= fabric.nodes()) {
        return Err(bad_input(format!("node {node} is not on the machine")));
    }
    if let Some(link) = links.iter().find(|&&link| link >= fabric.links()) {
        return Err(bad_input(format!("there is no cable {link}")));
    }
    Ok(Placement::new(fabric, nodes, Share::Whole).with_links(fabric, links, 1.0))
}
