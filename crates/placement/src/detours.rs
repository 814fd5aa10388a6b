//! What jobs leave to each other of the cables between groups of a dragonfly whose routing adapts to load.
//!
//! The hose model (Duffield et al., SIGCOMM 1999): a node sends and receives at most its bandwidth, to and from any nodes of
//! its job. Of all such traffic, the one that loads a cable most has a closed form: see docs/explanation/wirings.md.
//!
//! A job with a promise keeps its share of the cables between its own groups. It may take detours over other cables, but
//! need not: a routing that adapts to load takes none where others send.

use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex};

/// Sums of loads may differ from a bound in the last places.
const ROUNDING: f64 = 1e-9;

/// The nodes of a job in each of its groups, ascending by group. A job in one group uses no cable between groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Group and number of nodes.
    parts: Box<[(u32, u32)]>,
    nodes: u32,
}

impl Spread {
    /// Returns the spread of a job on some nodes; `None` if it is in one group, or if no message takes a detour.
    pub fn of(fabric: &Fabric, nodes: &[NodeIndex]) -> Option<Self> {
        let dragonfly = fabric.wiring().dragonfly().filter(|it| it.detours().is_some())?;
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        let group = |node| dragonfly.group_of_level_2(fabric.group(2, node));
        Spread::of_parts(nodes.into_iter().map(|node| (group(node), 1)))
    }

    /// Returns the spread of a job with these numbers of nodes in groups; `None` if it is in one group.
    pub fn of_parts(parts: impl IntoIterator<Item = (u32, u32)>) -> Option<Self> {
        let mut parts: Vec<(u32, u32)> = parts.into_iter().filter(|part| part.1 > 0).collect();
        parts.sort_unstable();
        parts.dedup_by(|next, part| {
            let is_same = next.0 == part.0;
            part.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        let nodes = parts.iter().map(|part| part.1).sum();
        (parts.len() > 1).then(|| Spread { parts: parts.into(), nodes })
    }

    /// The job's nodes in a group.
    fn nodes_in(&self, group: u32) -> u32 {
        let found = self.parts.binary_search_by_key(&group, |part| part.0);
        found.map_or(0, |at| self.parts[at].1)
    }

    /// The most nodes that send at once over the cables between two groups.
    fn flows(&self, one: u32, other: u32) -> Flows {
        let (here, there) = (self.nodes_in(one), self.nodes_in(other));
        let elsewhere = self.nodes - here - there;
        let detoured = here.abs_diff(there).min(elsewhere);
        Flows { direct: here.min(there).into(), detoured: detoured.into() }
    }

    /// Whether the job is in both groups.
    fn is_in_both(&self, (one, other): (u32, u32)) -> bool {
        self.nodes_in(one) > 0 && self.nodes_in(other) > 0
    }

    /// The pairs of groups whose cables the job may use, the lower group first.
    fn pairs(&self, groups: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let own = self.parts.iter().map(|part| part.0);
        own.flat_map(move |group| {
            let others = (0..groups).filter(move |&other| other != group);
            // A pair of two groups of the job comes from the lower one.
            let others = others.filter(move |&other| other > group || self.nodes_in(other) == 0);
            others.map(move |other| (group.min(other), group.max(other)))
        })
    }
}

/// The nodes of a job, or the sum over jobs, that send at once over the cables from one group to another: the number of the other way is the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flows {
    /// From one of the two groups to the other.
    direct: u64,
    /// From or to a third group of the job, on a detour over one of the two.
    detoured: u64,
}

/// What does not change.
#[derive(Debug)]
struct Cables {
    groups: u32,
    /// What a direct flow puts on the cables, in bytes per second.
    of_direct: f64,
    /// What a flow on a detour puts there.
    of_detoured: f64,
    /// The share that others leave to a job to which links are promised.
    share: f64,
    /// Bandwidth of all cables between two groups, by [`pair`].
    bandwidth: Vec<f64>,
}

/// The load of the cables between groups when all jobs send as they may.
#[derive(Debug, Clone)]
pub(crate) struct DetourLoad {
    cables: Arc<Cables>,
    /// The flows of all jobs, by [`pair`].
    flows: Vec<Flows>,
    /// The most load at which all jobs with promises keep their shares.
    limit: Vec<f64>,
    /// The jobs with promises, in any order.
    promised: Vec<Spread>,
}

impl DetourLoad {
    /// Returns the load of an empty machine; `None` if no message takes a detour.
    pub fn of(fabric: &Fabric) -> Option<Self> {
        let dragonfly = fabric.wiring().dragonfly()?;
        let detours = dragonfly.detours()?;
        let groups = dragonfly.groups();
        let (node, over_one) = (fabric.bandwidth(0), detours.part / f64::from(groups));
        let pairs = (0..groups).flat_map(|high| (0..high).map(move |low| (low, high)));
        let bandwidth = |(low, high)| -> f64 {
            dragonfly.lanes(low, high).iter().map(|lane| lane.bandwidth).sum()
        };
        let bandwidth: Vec<f64> = pairs.map(bandwidth).collect();
        let (flows, limit) =
            (vec![Flows::default(); bandwidth.len()], vec![f64::INFINITY; bandwidth.len()]);
        let cables = Cables {
            groups,
            // A message whose third group is one of its own two goes directly.
            of_direct: node * (1.0 - detours.part + 2.0 * over_one),
            of_detoured: node * over_one,
            share: detours.share,
            bandwidth,
        };
        Some(DetourLoad { cables: Arc::new(cables), flows, limit, promised: Vec::new() })
    }

    fn load(&self, flows: Flows) -> f64 {
        let Cables { of_direct, of_detoured, .. } = *self.cables;
        of_direct * flows.direct as f64 + of_detoured * flows.detoured as f64
    }

    /// The most that others may put on the cables of a pair if a job with a promise is in both groups.
    fn left_to_others(&self, pair: usize) -> f64 {
        (1.0 - self.cables.share) * self.cables.bandwidth[pair]
    }

    /// Whether all jobs with promises keep their shares if one more comes. `has_promise`: it has one too.
    pub fn has_room_for(&self, spread: &Spread, has_promise: bool) -> bool {
        spread.pairs(self.cables.groups).all(|groups| {
            let (at, own) = (pair(groups), self.load(spread.flows(groups.0, groups.1)));
            let others = self.load(self.flows[at]);
            let fits = |load: f64, most: f64| load <= most * (1.0 + ROUNDING);
            let is_own = has_promise && spread.is_in_both(groups);
            fits(others + own, self.limit[at]) && (!is_own || fits(others, self.left_to_others(at)))
        })
    }

    pub fn enter(&mut self, spread: &Spread, has_promise: bool) {
        for groups in spread.pairs(self.cables.groups) {
            let (at, own) = (pair(groups), spread.flows(groups.0, groups.1));
            self.flows[at].direct += own.direct;
            self.flows[at].detoured += own.detoured;
            if has_promise && spread.is_in_both(groups) {
                self.limit[at] = self.limit[at].min(self.left_to_others(at) + self.load(own));
            }
        }
        if has_promise {
            self.promised.push(spread.clone());
        }
    }

    pub fn leave(&mut self, spread: &Spread, has_promise: bool) {
        // Jobs with one spread are alike here.
        let alike = self.promised.iter().position(|other| has_promise && other == spread);
        if let Some(at) = alike {
            self.promised.swap_remove(at);
        }
        for groups in spread.pairs(self.cables.groups) {
            let (at, own) = (pair(groups), spread.flows(groups.0, groups.1));
            self.flows[at].direct -= own.direct;
            self.flows[at].detoured -= own.detoured;
            if alike.is_some() && spread.is_in_both(groups) {
                self.limit[at] = self.limit_of(groups);
            }
        }
    }

    /// The most load of a pair of groups at which all jobs with promises keep their shares.
    fn limit_of(&self, groups: (u32, u32)) -> f64 {
        let own = self.promised.iter().filter(|job| job.is_in_both(groups));
        let own = own.map(|job| self.load(job.flows(groups.0, groups.1)));
        own.fold(f64::INFINITY, f64::min) + self.left_to_others(pair(groups))
    }
}

/// The number of a pair of groups, of which the first is the lower one.
fn pair((low, high): (u32, u32)) -> usize {
    high as usize * (high as usize - 1) / 2 + low as usize
}
