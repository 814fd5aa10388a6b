//! Counts the links that jobs may have shared.

use std::collections::BTreeSet;

use topolane_fabric::{CableId, Fabric, LinkSet};
use topolane_placement::Placement;

use crate::simulate::Outcome;

/// A job that crosses a group and may use its uplinks.
struct CrossingJob<'a> {
    /// The job's index in the outcome.
    job: usize,
    /// When the job leaves the uplinks.
    until: f64,
    /// The uplinks that it owns; `None` if it may use any.
    own: Option<&'a [CableId]>,
    /// Whether the job may have shared all uplinks that it may use.
    met_all: bool,
    /// If not, the uplinks that it may have shared.
    met: BTreeSet<CableId>,
}

impl CrossingJob<'_> {
    /// Records that another job may use the group's uplinks, of which there are `there`. Returns how many uplinks were
    /// not shared before.
    fn meet(&mut self, other: Option<&[CableId]>, there: u32) -> u32 {
        if self.met_all {
            return 0;
        }
        let before = self.met.len() as u32;
        match (self.own, other) {
            (own, None) => {
                self.met_all = true;
                return own.map_or(there, |own| own.len() as u32) - before;
            }
            (None, Some(theirs)) => self.met.extend(theirs),
            (Some(own), Some(theirs)) => {
                self.met.extend(theirs.iter().filter(|cable| own.contains(cable)));
            }
        }
        self.met.len() as u32 - before
    }
}

/// A time span that a job spends on one placement.
#[derive(Debug, Clone, Copy)]
pub struct PlacementStay<'a> {
    /// The index of the job, below the number of jobs.
    pub job: usize,
    /// When the job arrives.
    pub from: f64,
    /// When the job leaves; after `from`.
    pub until: f64,
    /// Where the job is.
    pub placement: &'a Placement,
}

/// For every job, the number of links that another job may have used at the same time: uplinks of groups that both
/// cross, links of nodes that both share, and WAN links on the routes of both. For a job that owns links, only its own
/// links count. `stays` must be in order of their beginning.
///
/// On a wiring that is not a tree, it is the number of cables, for each direction.
pub fn links_shared(fabric: &Fabric, jobs: usize, stays: Vec<PlacementStay<'_>>) -> Vec<u32> {
    if !fabric.wiring().is_tree() {
        return wired_links_shared(fabric, jobs, stays);
    }
    // By level and group: the jobs that cross it and may still run. The top level has no uplinks; its entries are the
    // WAN links.
    let users = |groups: usize| (0..groups).map(|_| Vec::new()).collect();
    let mut crossing: Vec<Vec<Vec<CrossingJob<'_>>>> =
        (0..fabric.depth()).map(|level| users(fabric.groups(level) as usize)).collect();
    crossing.push(users(fabric.wans().count()));
    let mut shared = vec![0; jobs];
    for PlacementStay { job: index, from, until, placement } in stays {
        for (level, group) in links_of(fabric, placement) {
            let there =
                if level < fabric.depth() { fabric.present_uplinks(level, group) } else { 1 };
            let own = own_uplinks(fabric, placement, level, group);
            let mut user =
                CrossingJob { job: index, until, own, met_all: false, met: BTreeSet::new() };
            let present = &mut crossing[level][group as usize];
            present.retain(|other| other.until > from);
            for other in present.iter_mut() {
                shared[other.job] += other.meet(user.own, there);
                shared[index] += user.meet(other.own, there);
            }
            present.push(user);
        }
    }
    shared
}

fn wired_links_shared(fabric: &Fabric, jobs: usize, stays: Vec<PlacementStay<'_>>) -> Vec<u32> {
    let mut shared = vec![0; jobs];
    // Each stay that may still last, with the links that it met another job on.
    let mut present: Vec<(PlacementStay<'_>, LinkSet)> = Vec::new();
    let mut count = |stay: &PlacementStay<'_>, met: &LinkSet| {
        shared[stay.job] += fabric.cables_in(met);
    };
    for stay in stays {
        present.retain(|(other, met)| {
            let lasts = other.until > stay.from;
            if !lasts {
                count(other, met);
            }
            lasts
        });
        let mut own = LinkSet::default();
        for (other, met) in &mut present {
            let both = stay.placement.uses().and(other.placement.uses());
            if !both.is_empty() {
                *met = met.or(&both);
                own = own.or(&both);
            }
        }
        present.push((stay, own));
    }
    for (stay, met) in &present {
        count(stay, met);
    }
    shared
}

/// All stays of nonzero duration, in order of their beginning.
pub(crate) fn stays(outcome: &Outcome) -> Vec<PlacementStay<'_>> {
    let mut stays = Vec::with_capacity(outcome.jobs.len());
    for (index, job) in outcome.jobs.iter().enumerate() {
        let mut from = job.start;
        for (until, placement) in job.places() {
            if until > from {
                stays.push(PlacementStay { job: index, from, until, placement });
            }
            from = until;
        }
    }
    stays.sort_by(|one, other| one.from.total_cmp(&other.from));
    stays
}

/// The uplinks of a group that a placement owns; `None` if it may use any.
fn own_uplinks<'a>(
    fabric: &Fabric,
    placement: &'a Placement,
    level: usize,
    group: u32,
) -> Option<&'a [CableId]> {
    let links = placement.links();
    if links.is_empty() || level == 0 || level == fabric.depth() {
        return None;
    }
    let uplinks = fabric.uplinks(level, group);
    let before = |end| links.partition_point(|&cable| cable < end);
    Some(&links[before(uplinks.start)..before(uplinks.end)])
}

/// The groups whose uplinks the placement may use, as (level, group); and the WAN links on shortest routes between two
/// of its sites, as (top, number). The link of a node is skipped if the placement holds the whole node, because no
/// other job uses it.
fn links_of(fabric: &Fabric, placement: &Placement) -> Vec<(usize, u32)> {
    let top = fabric.depth();
    let crossed = placement.crossed().iter().map(|&(level, group)| (usize::from(level), group));
    let (sites, mut links): (Vec<_>, Vec<_>) = crossed.partition(|&(level, _)| level == top);
    if !placement.share().is_whole() && placement.spans_nodes() {
        let mut nodes = placement.nodes().to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        links.extend(nodes.into_iter().map(|node| (0, node)));
    }
    let on_way = |from: u32, to: u32, (a, b): (u32, u32)| {
        let hops = |x, y| fabric.site_hops(x, y);
        let over = |a, b| Some(hops(from, a)? + 1 + hops(b, to)?);
        hops(from, to).is_some() && over(a, b) == hops(from, to)
    };
    for (number, (_, ends, ..)) in fabric.wans().enumerate() {
        let from_any =
            |&(_, from): &(usize, u32)| sites.iter().any(|&(_, to)| on_way(from, to, ends));
        if sites.iter().any(from_any) {
            links.push((top, number as u32));
        }
    }
    links
}
