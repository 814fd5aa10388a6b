//! The state of a machine behind `topolane place`.

use std::collections::BTreeMap;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_fabric::resources::check_resource;
use topolane_fabric::{Fabric, NodeSet};
use topolane_placement::{
    Amounts, GpuPart, Holder, Lack, MemberMove, NotWithin, Occupancy, Placement, Refusal, Request,
    Room, RoomQuestion, RunningGroup, Share, Within, moves,
};

use crate::answering::answering;
use crate::decision::{Answer, Decision};
use crate::error::bad_input;
use crate::machine::Machine;
use crate::policy::policy_on;
use crate::routing::needs_tree;

/// Which job holds what on a machine, for placing requests.
#[pyclass(module = "topolane._engine")]
pub struct State {
    /// Shared with calls that read it; a change meanwhile copies it.
    pub occupancy: Arc<Occupancy>,
    /// The jobs that have an id.
    jobs: Arc<Vec<(u64, Placement)>>,
    /// The ids of those jobs that were added by `overlay`.
    laid: Vec<u64>,
}

/// A move: (index in the list of members, from, to, sum of hops before, sum of hops after).
type MoveRow = (usize, u32, u32, f64, f64);

/// The cost of every node, or a refusal.
#[derive(IntoPyObject)]
pub enum Costs<'py> {
    Costs(Bound<'py, PyArray1<f64>>),
    Refusal(crate::decision::Refusal),
}

#[pymethods]
impl State {
    #[new]
    fn new(machine: &Machine) -> Self {
        let occupancy = Occupancy::new(Arc::clone(&machine.fabric));
        State { occupancy: Arc::new(occupancy), jobs: Arc::default(), laid: Vec::new() }
    }

    /// Adds a job that holds nodes, once per slot, and cables between switches. `share` is what each slot takes, or
    /// None for whole nodes; `bandwidth_share` is its share of full bandwidth on its own links. `link_use` says who else
    /// may use those that it may use, as in a view. Refusals name only jobs with an id.
    #[pyo3(signature = (nodes, share=None, links=vec![], bandwidth_share=1.0, *, link_use="shared", id=None))]
    fn hold(
        &mut self,
        nodes: Vec<u32>,
        share: Option<ShareArg>,
        links: Vec<u32>,
        bandwidth_share: f64,
        link_use: &str,
        id: Option<u64>,
    ) -> PyResult<()> {
        let fabric = Arc::clone(self.occupancy.fabric());
        self.check(&nodes, "node")?;
        self.check_links(&links)?;
        let what = if links.is_empty() { "" } else { ", or a link above it," };
        let share =
            share_from(share, &fabric)?.map_err(|refusal| bad_input(refusal.to_string()))?;
        let placement =
            Placement::new(&fabric, nodes, share).with_links(&fabric, links, bandwidth_share);
        let placement = match link_use {
            "isolated" => placement.isolated(true),
            "isolated-global" => placement.isolated_between_groups(&fabric),
            _ => placement,
        };
        let placement = self.occupancy.name_gpus(placement);
        Arc::make_mut(&mut self.occupancy).adopt(&placement).map_err(|error| {
            let name = fabric.node_name(error.node);
            bad_input(format!(
                "node {name}{what} has not enough left for a job that is said to hold it"
            ))
        })?;
        Arc::make_mut(&mut self.jobs).extend(id.map(|id| (id, placement)));
        Ok(())
    }

    /// Adds a group whose slots another system counts. It only crosses links: as its own if `owned`; all above it if
    /// members are `beyond` the machine; or it owns `links`. Refusals name only groups with an id.
    #[pyo3(signature = (nodes, owned=false, beyond=false, *, links=vec![], bandwidth_share=1.0, id=None))]
    fn overlay(
        &mut self,
        nodes: Vec<u32>,
        owned: bool,
        beyond: bool,
        links: Vec<u32>,
        bandwidth_share: f64,
        id: Option<u64>,
    ) -> PyResult<()> {
        let fabric = Arc::clone(self.occupancy.fabric());
        self.check(&nodes, "node")?;
        self.check_links(&links)?;
        let placement = Placement::new(&fabric, nodes, Share::part(1, 0))
            .with_links(&fabric, links, bandwidth_share)
            .isolated(owned);
        let placement = if beyond { placement.reaching_beyond(&fabric) } else { placement };
        Arc::make_mut(&mut self.occupancy).overlay(&placement);
        self.laid.extend(id);
        Arc::make_mut(&mut self.jobs).extend(id.map(|id| (id, placement)));
        Ok(())
    }

    /// Ends the job with this id that [`hold`](State::hold) added. Returns False if there is none.
    fn release(&mut self, id: u64) -> bool {
        // A group added by `overlay` cannot be removed: it took only what was left.
        let held = |&(job, _): &(u64, Placement)| job == id && !self.laid.contains(&id);
        let Some(place) = self.jobs.iter().position(held) else { return false };
        let (_, placement) = Arc::make_mut(&mut self.jobs).remove(place);
        Arc::make_mut(&mut self.occupancy).release(&placement);
        true
    }

    /// Takes nodes out of service.
    fn take_out(&mut self, nodes: Vec<u32>) -> PyResult<()> {
        self.set_in_service(nodes, false)
    }

    /// Puts nodes back into service.
    fn put_back(&mut self, nodes: Vec<u32>) -> PyResult<()> {
        self.set_in_service(nodes, true)
    }

    /// Asks a policy for nodes. The state does not change.
    #[pyo3(signature = (policy, nodes, *, id=0, share=None, stacked=false, members=vec![], eligible=None, slots=None, room=None, segment=None, within=None, min_bandwidth=None, seed=0))]
    #[allow(clippy::too_many_arguments)]
    fn place(
        &self,
        py: Python<'_>,
        policy: &Bound<'_, PyAny>,
        nodes: u32,
        id: u64,
        share: Option<ShareArg>,
        stacked: bool,
        members: Vec<u32>,
        eligible: Option<Vec<u32>>,
        slots: Option<Vec<u32>>,
        room: Option<Vec<u32>>,
        segment: Option<u32>,
        within: Option<&str>,
        min_bandwidth: Option<f64>,
        seed: u64,
    ) -> PyResult<Answer> {
        if segment == Some(0) {
            return Err(bad_input("a segment has at least 1 node, not 0"));
        }
        let fabric = self.occupancy.fabric();
        if let Some(eligible) = &eligible {
            self.check(eligible, "eligible node")?;
        }
        let eligible = eligible.map(|nodes| Arc::new(NodeSet::of(fabric.nodes(), nodes)));
        let share = match share_from(share, fabric)? {
            Ok(share) => share,
            Err(refusal) => return Ok(Answer::Refusal(refusal.into())),
        };
        let within = within_from(within, fabric)?;
        let min_bandwidth = min_bandwidth_from(min_bandwidth)?.filter(|&given| given < 1.0);
        let room = self.counted(room)?;
        let asked = self.request(nodes, members, slots, stacked)?;
        let request =
            Request { id, share, eligible, segment, within, room, min_bandwidth, ..asked };
        let (policy, raised) = policy_on(self.occupancy.fabric(), policy, seed)?;
        let (occupancy, jobs) = (Arc::clone(&self.occupancy), Arc::clone(&self.jobs));
        let answer = raised.asking(py, move || {
            let placed = policy.place(&request, &occupancy);
            placed.map(|placement| (request.clone(), placement)).map_err(|refusal| {
                let blocked = matches!(refusal, Refusal::WouldShareLinks { .. });
                let never = blocked.then(|| policy.never(&request, &occupancy)).flatten();
                let jobs: Vec<Holder<'_>> = jobs.iter().map(|(id, one)| (*id, one)).collect();
                match never {
                    Some(never) => never.into(),
                    None => match policy.explain(&request, &occupancy, &jobs) {
                        Some(explanation) => explanation.into(),
                        None => crate::decision::Refusal::from(refusal),
                    },
                }
            })
        })?;
        Ok(match answer {
            Ok((request, placement)) => {
                let (request, placement) = (Box::new(request), Arc::new(placement));
                let decision = topolane_placement::Decision { request, placement };
                Answer::Decision(Decision::of(fabric, decision))
            }
            Err(refusal) => Answer::Refusal(refusal),
        })
    }

    /// The moves of a running group's members that reduce its hops by at least `price` each.
    #[pyo3(signature = (members, slots, *, fixed=vec![], price=1, stacked=false, isolates=false))]
    #[allow(clippy::too_many_arguments)]
    fn moves(
        &self,
        py: Python<'_>,
        members: Vec<u32>,
        slots: Vec<u32>,
        fixed: Vec<u32>,
        price: u32,
        stacked: bool,
        isolates: bool,
    ) -> PyResult<Vec<MoveRow>> {
        self.check(&members, "member node")?;
        self.check(&fixed, "member node")?;
        needs_tree(self.occupancy.fabric(), "a plan of moves")?;
        let machine = self.occupancy.fabric().nodes() as usize;
        if slots.len() != machine {
            return Err(bad_input(format!("{} slots are given for {machine} nodes", slots.len())));
        }
        let occupancy = Arc::clone(&self.occupancy);
        let found = answering(py, move || {
            let (members, fixed, slots) = (&members, &fixed, &slots);
            moves(RunningGroup { members, fixed, slots, stacked, isolates }, &occupancy, price)
        })?;
        let row = |step: MemberMove| (step.member, step.from, step.to, step.before, step.after);
        Ok(found.into_iter().map(row).collect())
    }

    /// For every node, the cost of giving it the next slot of a request: see `Policy::costs`.
    #[pyo3(signature = (policy, nodes, *, members=vec![], slots=None, stacked=false, beyond=0, seed=0))]
    #[allow(clippy::too_many_arguments)]
    fn costs<'py>(
        &self,
        py: Python<'py>,
        policy: &Bound<'_, PyAny>,
        nodes: u32,
        members: Vec<u32>,
        slots: Option<Vec<u32>>,
        stacked: bool,
        beyond: u32,
        seed: u64,
    ) -> PyResult<Costs<'py>> {
        let (policy, raised) = policy_on(self.occupancy.fabric(), policy, seed)?;
        let request = Request { beyond, ..self.request(nodes, members, slots, stacked)? };
        let occupancy = Arc::clone(&self.occupancy);
        let costs = raised.asking(py, move || policy.weigh(&request, &occupancy))?;
        Ok(match costs {
            Ok(costs) => Costs::Costs(costs.into_pyarray(py)),
            Err(refusal) => Costs::Refusal(refusal.into()),
        })
    }

    /// How many more jobs of each size fit at each level, and which GPUs no job can use, as a dictionary. `sizes` are
    /// GPUs, or nodes on a machine without GPUs; by default powers of two. `smallest` is the least that a job takes on
    /// a node.
    #[pyo3(signature = (sizes=None, segment=None, smallest=None))]
    fn room<'py>(
        &self,
        py: Python<'py>,
        sizes: Option<Vec<u32>>,
        segment: Option<u32>,
        smallest: Option<ShareArg>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = self.room_question(sizes, segment, smallest)?;
        let occupancy = Arc::clone(&self.occupancy);
        as_python(py, &answering(py, move || Room::of(&occupancy, &question))?)
    }

    /// The free capacity of every domain, or of every leaf on a machine without domains: a list of dictionaries.
    #[pyo3(signature = (segment=None, smallest=None))]
    fn room_by_domain<'py>(
        &self,
        py: Python<'py>,
        segment: Option<u32>,
        smallest: Option<ShareArg>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = self.room_question(Some(Vec::new()), segment, smallest)?;
        let occupancy = Arc::clone(&self.occupancy);
        as_python(py, &answering(py, move || Room::by_domain(&occupancy, &question))?)
    }
}

fn as_python<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value)
        .map_err(|error| bad_input(format!("figures that cannot be written: {error}")))?;
    py.import("json")?.call_method1("loads", (text,))
}

impl State {
    fn set_in_service(&mut self, nodes: Vec<u32>, in_service: bool) -> PyResult<()> {
        self.check(&nodes, "node")?;
        let occupancy = Arc::make_mut(&mut self.occupancy);
        for node in nodes {
            occupancy.set_in_service(node, in_service);
        }
        Ok(())
    }

    fn room_question(
        &self,
        sizes: Option<Vec<u32>>,
        segment: Option<u32>,
        smallest: Option<ShareArg>,
    ) -> PyResult<RoomQuestion> {
        let fabric = self.occupancy.fabric();
        let share = smallest.map(|smallest| share_from(Some(smallest), fabric)).transpose()?;
        let smallest = match share {
            None | Some(Ok(Share::Whole)) => Amounts::default(),
            Some(Ok(Share::Part(amounts))) => amounts,
            Some(Err(refusal)) => return Err(bad_input(refusal.to_string())),
        };
        let sizes = sizes.unwrap_or_else(|| Room::usual_sizes(fabric));
        if sizes.contains(&0) || segment == Some(0) {
            return Err(bad_input("a size of jobs or segments is 1 or more, not 0"));
        }
        Ok(RoomQuestion { sizes, segment, smallest })
    }

    /// Checks that nodes are on the machine.
    pub fn check(&self, nodes: &[u32], what: &str) -> PyResult<()> {
        match nodes.iter().find(|&&node| node >= self.occupancy.fabric().nodes()) {
            Some(node) => Err(bad_input(format!("{what} {node} is not on the machine"))),
            None => Ok(()),
        }
    }

    fn check_links(&self, links: &[u32]) -> PyResult<()> {
        match links.iter().find(|&&link| link >= self.occupancy.fabric().links()) {
            Some(link) => Err(bad_input(format!("there is no cable {link}"))),
            None => Ok(()),
        }
    }

    /// Checks the slots of every node that another system counted.
    fn counted(&self, slots: Option<Vec<u32>>) -> PyResult<Option<Arc<[u32]>>> {
        let machine = self.occupancy.fabric().nodes() as usize;
        match slots.as_ref().filter(|slots| slots.len() != machine) {
            Some(slots) => {
                Err(bad_input(format!("{} slots are given for {machine} nodes", slots.len())))
            }
            None => Ok(slots.map(Arc::from)),
        }
    }

    fn request(
        &self,
        nodes: u32,
        members: Vec<u32>,
        slots: Option<Vec<u32>>,
        stacked: bool,
    ) -> PyResult<Request> {
        if nodes == 0 {
            return Err(bad_input("a request asks for at least 1 node, not 0"));
        }
        self.check(&members, "member node")?;
        let slots = self.counted(slots)?;
        Ok(Request { nodes, members, slots, stacked, ..Request::default() })
    }
}

/// Parses the group in which a request is to lie.
pub fn within_from(text: Option<&str>, fabric: &Fabric) -> PyResult<Within> {
    let Some(text) = text else { return Ok(Within::default()) };
    let within: Within = text.parse().map_err(|error: NotWithin| bad_input(error.to_string()))?;
    within.check(fabric).map_err(|error| bad_input(format!("within {text}: {error}")))?;
    Ok(within)
}

/// What a slot takes, as a Python argument.
#[derive(FromPyObject)]
pub enum ShareArg {
    /// Names and counts of resources, with at most one part of a GPU.
    Named(BTreeMap<String, CountArg>),
    /// Cores, and memory in bytes.
    Pair((u32, u64)),
}

/// The amount of a resource that a slot takes, as a Python argument.
#[derive(FromPyObject)]
pub enum CountArg {
    Whole(u64),
    Part(f64),
}

/// The whole counts, and the name and thousandths of a part of a GPU, if there is one.
type CountsAndPart = (BTreeMap<String, u64>, Option<(String, u16)>);

fn counts_and_part(counts: BTreeMap<String, CountArg>) -> PyResult<CountsAndPart> {
    let (mut whole, mut part) = (BTreeMap::new(), None);
    for (name, count) in counts {
        let thousandths = match count {
            CountArg::Whole(count) => {
                whole.insert(name, count);
                continue;
            }
            CountArg::Part(count) => (count * 1000.0).round(),
        };
        let is_gpu = name.split(':').next() == Some("gpu");
        if !is_gpu || !(1.0..1000.0).contains(&thousandths) {
            let count = thousandths / 1000.0;
            return Err(bad_input(format!(
                "{name} {count}: a slot takes whole ones, or of one GPU a part below 1"
            )));
        }
        if part.replace((name, thousandths as u16)).is_some() {
            return Err(bad_input("a slot takes a part of one GPU, not of several"));
        }
    }
    let is_gpu = |name: &String| name.split(':').next() == Some("gpu");
    if let (Some((name, _)), true) =
        (&part, whole.iter().any(|(name, &count)| is_gpu(name) && count > 0))
    {
        return Err(bad_input(format!("a part of {name} and whole GPUs for one slot")));
    }
    Ok((whole, part))
}

/// Checks the least share of full bandwidth that a job accepts on links of its own.
pub fn min_bandwidth_from(share: Option<f64>) -> PyResult<Option<f64>> {
    match share {
        Some(given) if !(given > 0.0 && given <= 1.0) => Err(bad_input(format!(
            "the minimum bandwidth share must be above 0 and at most 1, not {given}"
        ))),
        _ => Ok(share),
    }
}

/// Returns what a slot takes on a machine: resources and counts, or whole nodes. The inner error is the refusal for a
/// resource that no node has.
pub fn share_from(share: Option<ShareArg>, fabric: &Fabric) -> PyResult<Result<Share, Refusal>> {
    let no_core = || bad_input("a slot takes at least 1 core, not 0");
    match share {
        None => Ok(Ok(Share::Whole)),
        Some(ShareArg::Pair((0, _))) => Err(no_core()),
        Some(ShareArg::Pair((cores, memory))) => Ok(Ok(Share::part(cores, memory))),
        Some(ShareArg::Named(counts)) => {
            let (mut counts, part) = counts_and_part(counts)?;
            if let Some((name, _)) = &part {
                check_resource(name).map_err(bad_input)?;
            }
            for name in counts.keys() {
                check_resource(name).map_err(bad_input)?;
            }
            if *counts.entry("cores".to_owned()).or_insert(1) == 0 {
                return Err(no_core());
            }
            let counts = counts.iter().map(|(name, &count)| (name.as_str(), count));
            let amounts = Amounts::named(fabric.resources(), counts);
            let Some((name, thousandths)) = part else {
                return Ok(amounts.map(Share::Part).map_err(Refusal::Lacks));
            };
            let lacks = || Lack { resource: name.as_str().into(), wanted: 1, most: 0 };
            let index = fabric.resources().index(&name).ok_or_else(lacks);
            let share = amounts.and_then(|amounts| {
                Ok(Share::Part(amounts.with_gpu_part(GpuPart::new(index?, thousandths))))
            });
            Ok(share.map_err(Refusal::Lacks))
        }
    }
}
