//! What must be free before a rule can place a request, and what jobs would free of it.
//!
//! All this is necessary and need not be enough: the rule may want more, such as links. So it bounds the cost of room from
//! below, and it names sets of jobs that are worth asking about.

use topolane_fabric::{Fabric, GroupIndex, NodeIndex};

use super::counts::CountedAmounts;
use super::jobs::Jobs;
use super::knapsack::{Item, Relaxed, by_ratio, cheapest, relaxed, relaxed_parts};
use super::plan::Touchable;
use crate::homes::Homes;
use crate::occupancy::Occupancy;
use crate::request::{Request, Share};

/// Places for which the cheapest cover is looked for, if the rule does not say where the request must lie.
const BASES: usize = 8;

/// Parts in which a node with several jobs is counted where all of them must leave it: each frees some of the parts.
const PARTS_OF_A_NODE: u32 = 12;

/// Sets of nodes in which there must be slots.
#[derive(Debug)]
pub(super) struct Cover<'a> {
    jobs: &'a [Touchable<'a>],
    budgets: &'a [u32],
    /// The whole machine.
    all: CoverPlace,
    /// What must be free on it.
    wanted: u32,
    /// Where parts of the request must lie; empty if the rule does not say. If there are several parts, a job counts in each home with a
    /// part of its cost: see [`split_costs`].
    homes: Vec<CoverPlace>,
    /// What a home must have free for a part.
    part: u32,
    /// How many parts must lie in homes.
    parts: u32,
    slots: NodeSlots,
}

/// A set of nodes.
#[derive(Debug)]
pub(super) struct CoverPlace {
    /// What is free there now.
    has: u32,
    /// What jobs would free, in the order of [`by_ratio`].
    pub items: Vec<Item>,
}

/// What is known before anything is asked.
#[derive(Debug)]
pub(super) struct Start {
    /// No room costs less; infinite if there is none.
    pub least: f64,
    /// Sets of jobs to begin with, cheapest first.
    pub bases: Vec<Base>,
}

/// Jobs that would free enough slots in one place, or in several.
#[derive(Debug)]
pub(super) struct Base {
    pub gone: Jobs,
    /// All jobs that free something there, those with the least cost for it first.
    pub inside: Vec<usize>,
}

impl<'a> Cover<'a> {
    /// Of a request; `homes` are where parts of it must lie, if the rule says so.
    pub fn new(
        request: &Request,
        occupancy: &Occupancy,
        jobs: &'a [Touchable<'a>],
        budgets: &'a [u32],
        homes: Option<Homes>,
        counts: Option<&CountedAmounts>,
    ) -> Self {
        let slots = match counts {
            None => NodeSlots::of(request, occupancy, jobs),
            Some(counts) => NodeSlots::counted(request, occupancy, jobs, counts),
        };
        let parts = homes.as_ref().map_or(0, |homes| request.nodes / homes.part.max(1));
        let (part, homes) = match homes.filter(|_| parts > 0) {
            None => (0, Vec::new()),
            Some(Homes { part, sets }) => {
                let place = |set: &Vec<NodeIndex>| slots.place(set.iter().copied(), jobs);
                let mut homes: Vec<CoverPlace> = sets.iter().map(place).collect();
                if parts > 1 {
                    split_costs(&mut homes, jobs.len());
                }
                (part, homes)
            }
        };
        Cover {
            jobs,
            budgets,
            all: slots.place(0..occupancy.fabric().nodes(), jobs).without_moves(
                request,
                jobs,
                slots.scale,
            ),
            wanted: request.nodes.saturating_mul(slots.scale),
            homes,
            part: part.saturating_mul(slots.scale),
            parts,
            slots,
        }
    }

    /// If the rule does not say where the request must lie, groups in which all of it might lie.
    fn groups(&self, request: &Request, fabric: &Fabric) -> Vec<CoverPlace> {
        let mut groups = Vec::new();
        for level in 1..fabric.depth() {
            let large =
                |group: &GroupIndex| fabric.node_range(level, *group).len() as u32 >= request.nodes;
            let place = |group| self.slots.place(fabric.node_range(level, group), self.jobs);
            groups.extend((0..fabric.groups(level)).filter(large).map(place));
        }
        groups
    }

    /// Whether there may be room once these jobs are gone.
    pub fn may_hold(&self, gone: &Jobs) -> bool {
        if self.all.free_without(gone) < self.wanted {
            return false;
        }
        let parts = self.homes.iter().map(|home| home.free_without(gone) / self.part.max(1));
        self.homes.is_empty() || parts.fold(0, u32::saturating_add) >= self.parts
    }

    /// What room costs at least if jobs that are `gone` are paid for and those that are `kept` stay, and a job that is worth
    /// deciding about; none if enough is free.
    pub fn needs(&self, gone: &Jobs, kept: &Jobs) -> Relaxed {
        let place = |place: &CoverPlace, wanted: u32| {
            let need = wanted.saturating_sub(place.free_without(gone));
            relaxed(&place.items, need, |job| !gone.contains(job) && !kept.contains(job))
        };
        let all = place(&self.all, self.wanted);
        if self.parts > 1 {
            let parts = self.needs_of_parts(gone, kept);
            return if is_more(&parts, &all) { parts } else { all };
        }
        let homes = self.homes.iter().map(|home| place(home, self.part));
        let home = homes.reduce(|one, other| if is_more(&one, &other) { other } else { one });
        home.filter(|home| is_more(home, &all)).unwrap_or(all)
    }

    /// The same for several parts in homes. In every home the relaxed cost is convex in the number of parts, so the cheapest next parts
    /// of all homes are the cheapest together.
    fn needs_of_parts(&self, gone: &Jobs, kept: &Jobs) -> Relaxed {
        let mut missing = self.parts;
        let mut next: Vec<(f64, usize)> = Vec::new();
        for home in &self.homes {
            let free = home.free_without(gone);
            missing = missing.saturating_sub(free / self.part);
            let need = self.part - free % self.part;
            let is_open = |job: usize| !gone.contains(job) && !kept.contains(job);
            next.extend(relaxed_parts(&home.items, need, self.part, is_open));
        }
        let missing = missing as usize;
        if missing > next.len() {
            return Relaxed { cost: f64::INFINITY, last: None };
        }
        next.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let cost = next[..missing].iter().map(|next| next.0).sum::<f64>();
        Relaxed { cost, last: missing.checked_sub(1).map(|last| next[last].1) }
    }

    /// The bound before anything is asked, and the sets of jobs to begin with.
    pub fn start(&self, request: &Request, fabric: &Fabric) -> Start {
        let all = self.covers(std::slice::from_ref(&self.all), self.wanted, 1);
        if self.parts == 0 {
            let mut bases = self.covers(&self.groups(request, fabric), self.wanted, BASES).bases;
            bases.extend(all.bases);
            return Start { least: all.least, bases };
        }
        let homes = match self.parts {
            1 => self.covers(&self.homes, self.part, BASES),
            _ => self.in_homes(),
        };
        let least = all.least.max(homes.least);
        let bases = homes.bases.into_iter().map(|base| {
            let mut gone = base.gone;
            fill(&self.all, self.wanted, &mut gone);
            Base { gone, ..base }
        });
        Start { least, bases: bases.chain(all.bases).collect() }
    }

    /// The cheapest cover of `wanted` slots in one of the places. If no more are asked for, only places that may be the cheapest are
    /// looked at.
    fn covers(&self, places: &[CoverPlace], wanted: u32, asked: usize) -> Start {
        let mut order: Vec<(f64, &CoverPlace)> = Vec::with_capacity(places.len());
        for place in places {
            let need = wanted.saturating_sub(place.has);
            order.push((relaxed(&place.items, need, |_| true).cost, place));
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut least = f64::INFINITY;
        let mut found: Vec<(f64, Base)> = Vec::new();
        for (bound, place) in order {
            if bound.is_infinite() || bound >= least && found.len() >= asked {
                break;
            }
            let (cost, gone) = self.cheapest(place, wanted);
            least = least.min(cost);
            let inside = || place.items.iter().map(|item| item.job).collect();
            found.extend(gone.map(|gone| (cost, Base { gone, inside: inside() })));
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        Start { least, bases: found.into_iter().map(|(_, base)| base).collect() }
    }

    /// The least cost of `wanted` slots in a place, and jobs that free them. If the problem is large, these jobs may cost more.
    fn cheapest(&self, place: &CoverPlace, wanted: u32) -> (f64, Option<Jobs>) {
        let need = wanted.saturating_sub(place.has);
        match cheapest(&place.items, need, self.budgets, self.jobs.len()) {
            Some((cost, _)) if cost.is_infinite() => (cost, None),
            Some((cost, jobs)) => (cost, Some(jobs)),
            None => {
                let mut gone = Jobs::none(self.jobs.len());
                fill(place, wanted, &mut gone);
                (relaxed(&place.items, need, |_| true).cost, Some(gone))
            }
        }
    }

    /// Several parts in homes. The parts of each home are chosen by dynamic programming.
    fn in_homes(&self) -> Start {
        let parts = self.parts as usize;
        let mut best = vec![f64::INFINITY; parts + 1];
        best[0] = 0.0;
        // By home and parts so far: how many parts in this home.
        let mut taken: Vec<Vec<usize>> = Vec::with_capacity(self.homes.len());
        let mut sets: Vec<Vec<(f64, Jobs)>> = Vec::with_capacity(self.homes.len());
        for home in &self.homes {
            let most = home.most() / self.part.max(1);
            let of = |parts: u32| {
                let (cost, set) = self.cheapest(home, parts * self.part);
                Some((cost, set?))
            };
            let costs: Vec<(f64, Jobs)> = (1..=most.min(self.parts)).map_while(of).collect();
            let mut now = best.clone();
            let mut here = vec![0; parts + 1];
            for all in 1..=parts {
                for (index, (cost, _)) in costs.iter().enumerate().take(all) {
                    let cost = best[all - index - 1] + cost;
                    if cost < now[all] {
                        (now[all], here[all]) = (cost, index + 1);
                    }
                }
            }
            best = now;
            taken.push(here);
            sets.push(costs);
        }
        let least = best[parts];
        if least.is_infinite() {
            return Start { least, bases: Vec::new() };
        }
        let at_home = self.homes.iter().flat_map(|home| &home.items).map(|item| item.job);
        let at_home = Jobs::of(self.jobs.len(), at_home);
        let mut gone = Jobs::none(self.jobs.len());
        let mut left = parts;
        for (taken, sets) in taken.iter().zip(&sets).rev() {
            let here = taken[left];
            if here > 0 {
                gone.add(&sets[here - 1].1);
                left -= here;
            }
        }
        let inside: Vec<usize> = self
            .all
            .items
            .iter()
            .map(|item| item.job)
            .filter(|&job| at_home.contains(job))
            .collect();
        Start { least, bases: vec![Base { gone, inside }] }
    }
}

/// Whether one costs more than the other. Where a job is still to be taken nothing is free yet, even if that job costs nothing.
fn is_more(one: &Relaxed, other: &Relaxed) -> bool {
    let takes = |of: &Relaxed| of.last.is_some();
    one.cost.total_cmp(&other.cost).then(takes(one).cmp(&takes(other))).is_gt()
}

/// Gives each job that frees slots in several homes in each of them the part of its cost that is its part of the slots. Jobs then cost
/// no more than the homes together in which they free slots.
fn split_costs(homes: &mut [CoverPlace], jobs: usize) {
    let mut freed = vec![0u64; jobs];
    for item in homes.iter().flat_map(|home| &home.items) {
        freed[item.job] += u64::from(item.gain);
    }
    for home in homes {
        for item in &mut home.items {
            item.cost *= f64::from(item.gain) / freed[item.job] as f64;
        }
        by_ratio(&mut home.items);
    }
}

/// Adds jobs, those with the least cost for what they free first, until `wanted` slots are free in a place.
fn fill(place: &CoverPlace, wanted: u32, gone: &mut Jobs) {
    let mut need = wanted.saturating_sub(place.free_without(gone));
    for item in &place.items {
        if need == 0 {
            break;
        }
        if !gone.contains(item.job) {
            gone.insert(item.job);
            need = need.saturating_sub(item.gain);
        }
    }
}

impl CoverPlace {
    /// Jobs that move need as many nodes elsewhere on the machine as they leave, but for spare ones; if the request may lie on any whole
    /// nodes they make no room on the machine as a whole.
    fn without_moves(
        mut self,
        request: &Request,
        jobs: &[Touchable<'_>],
        scale: u32,
    ) -> CoverPlace {
        let needs_nodes = |job: &Touchable<'_>| job.moves && job.request.share.is_whole();
        if request.share.is_whole() && request.eligible.is_none() {
            for item in &mut self.items {
                let job = &jobs[item.job];
                if needs_nodes(job) {
                    let nodes = (job.placement.nodes().len() as u32).saturating_mul(scale);
                    item.gain = item.gain.saturating_sub(nodes);
                }
            }
            self.items.retain(|item| item.gain > 0);
            by_ratio(&mut self.items);
        }
        self
    }

    fn free_without(&self, gone: &Jobs) -> u32 {
        let gains = self.items.iter().filter(|item| gone.contains(item.job)).map(|item| item.gain);
        gains.fold(self.has, u32::saturating_add)
    }

    /// What could be free there at best.
    fn most(&self) -> u32 {
        self.items.iter().map(|item| item.gain).fold(self.has, u32::saturating_add)
    }
}

/// What a job leaves on a node, as a part of what a slot is short of.
#[derive(Debug, Clone, Copy)]
struct SlotPart {
    left: i128,
    of: i128,
    /// The slots that the node gains at most.
    most: u32,
}

impl SlotPart {
    fn is_whole(&self) -> bool {
        self.left % self.of == 0 || self.left >= self.of * i128::from(self.most)
    }

    fn scaled(&self, scale: u32) -> u32 {
        let most = i128::from(self.most) * i128::from(scale);
        let part = (self.left * i128::from(scale) + self.of - 1) / self.of;
        u32::try_from(part.min(most)).unwrap_or(u32::MAX)
    }
}

/// The slots of every node, and the jobs that hold what is missing.
#[derive(Debug)]
pub(super) struct NodeSlots {
    /// Free now.
    free: Vec<u32>,
    /// By node the jobs there, and what each frees if it goes.
    gains: Vec<Vec<(usize, u32)>>,
    /// What a slot counts.
    scale: u32,
}

impl NodeSlots {
    pub fn of(request: &Request, occupancy: &Occupancy, jobs: &[Touchable<'_>]) -> Self {
        let nodes = occupancy.fabric().nodes();
        // By node the jobs on it, and how many slots they hold there.
        let mut holders: Vec<Vec<(usize, u32)>> = vec![Vec::new(); nodes as usize];
        for (index, job) in jobs.iter().enumerate() {
            for node in job.placement.held() {
                let holders = &mut holders[node as usize];
                match holders.iter_mut().find(|(other, _)| *other == index) {
                    Some((_, slots)) => *slots += 1,
                    None => holders.push((index, 1)),
                }
            }
        }
        let may = |node: NodeIndex| {
            occupancy.in_service().contains(node)
                && request.eligible.as_ref().is_none_or(|set| set.contains(node))
        };
        let all_touchable = |node: NodeIndex| {
            let held: u32 = holders[node as usize].iter().map(|&(_, slots)| slots).sum();
            held == occupancy.held(node)
        };
        let is_shared = |node: &NodeIndex| holders[*node as usize].len() > 1;
        let whole = request.share.is_whole();
        let scale =
            if whole && (0..nodes).any(|node| is_shared(&node)) { PARTS_OF_A_NODE } else { 1 };
        let free = occupancy.free_slots(request);
        let free: Vec<u32> = (0..nodes).map(|node| free.count(0, node)).collect();
        let gain = |node: NodeIndex| match &request.share {
            _ if !may(node) => 0,
            Share::Whole if !all_touchable(node) => 0,
            Share::Whole => scale.div_ceil(holders[node as usize].len().max(1) as u32),
            Share::Part(amounts) => {
                let most = occupancy.empty().slots_on(node, amounts);
                let most = if request.stacked { most } else { most.min(1) };
                most.saturating_sub(free[node as usize])
            }
        };
        let gains = (0..nodes).map(|node| {
            let gain = gain(node);
            let of = holders[node as usize].iter().map(|&(job, _)| (job, gain));
            if gain > 0 { of.collect() } else { Vec::new() }
        });
        let gains = gains.collect();
        NodeSlots { free, gains, scale }
    }

    /// The same where another system counts: what a job leaves of the amount that a node has least of, as a part of what is missing
    /// there for a slot.
    pub fn counted(
        request: &Request,
        occupancy: &Occupancy,
        jobs: &[Touchable<'_>],
        counts: &CountedAmounts,
    ) -> Self {
        let nodes = occupancy.fabric().nodes();
        let now = counts.slots([]);
        let ever = counts.slots(jobs.iter().map(|job| job.place));
        let of = |slots: &[u32], node: NodeIndex| slots.get(node as usize).copied().unwrap_or(0);
        let may = |node: NodeIndex| request.eligible.as_ref().is_none_or(|set| set.contains(node));
        let free = occupancy.free_slots(request);
        let free: Vec<u32> = (0..nodes).map(|node| free.count(0, node)).collect();
        let mut parts: Vec<Vec<(usize, SlotPart)>> = vec![Vec::new(); nodes as usize];
        let lefts = jobs.iter().map(|job| counts.left.get(job.place)).enumerate();
        for (job, left) in lefts.filter_map(|(job, left)| Some((job, left?))) {
            for (node, amounts) in left.rows(counts.takes.len()).filter(|&(node, _)| may(node)) {
                let gain = of(&ever, node).saturating_sub(of(&now, node));
                let gain = if request.stacked { gain } else { gain.min(1) };
                let Some(short) = counts.short(node).filter(|_| gain > 0) else { continue };
                let takes = i128::from(counts.takes[short.kind]);
                let (gains, left) = (i128::from(gain), i128::from(amounts[short.kind]));
                // The least that a slot costs of it, over all numbers of slots that may be gained.
                let all = short.by + (gains - 1) * takes;
                let part = if short.by * gains <= all {
                    SlotPart { of: short.by, left, most: gain }
                } else {
                    SlotPart { of: all, left: left * gains, most: gain }
                };
                if left > 0 {
                    parts[node as usize].push((job, part));
                }
            }
        }
        let is_whole = |(_, part): &(usize, SlotPart)| part.is_whole();
        let scale = if parts.iter().flatten().all(is_whole) { 1 } else { PARTS_OF_A_NODE };
        let scaled = |of: Vec<(usize, SlotPart)>| {
            of.into_iter().map(|(job, part)| (job, part.scaled(scale))).collect()
        };
        NodeSlots { free, gains: parts.into_iter().map(scaled).collect(), scale }
    }

    /// What is free on these nodes, and what jobs would free of them.
    pub fn place(
        &self,
        nodes: impl Iterator<Item = NodeIndex>,
        jobs: &[Touchable<'_>],
    ) -> CoverPlace {
        let mut has = 0u32;
        let mut freed: Vec<(usize, u32)> = Vec::new();
        for node in nodes {
            let free = self.free[node as usize].saturating_mul(self.scale);
            has = has.saturating_add(free);
            freed.extend_from_slice(&self.gains[node as usize]);
        }
        freed.sort_unstable();
        let items = freed.chunk_by(|one, next| one.0 == next.0).map(|same| {
            let job = same[0].0;
            let gain = same.iter().map(|one| one.1).fold(0, u32::saturating_add);
            let Touchable { cost, group, uses, .. } = jobs[job];
            Item { job, gain, cost, group, uses }
        });
        let mut items: Vec<Item> = items.collect();
        by_ratio(&mut items);
        CoverPlace { has, items }
    }
}
