//! The scheduler of a live driver: the same code as in the simulator.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::NodeSet;
use topolane_placement::{JobTraffic, Request};
use topolane_scheduler::HeadWait;

use crate::decision::{Decision, Refusal};
use crate::error::bad_input;
use crate::machine::Machine;
use crate::network::check_share;
use crate::policy::{Raised, policy_on, queue_names};
use crate::rank_k::{Profile, Rank, RankKArguments};
use crate::routing::Routing;
use crate::state::{ShareArg, min_bandwidth_from, share_from, within_from};
use crate::traffic::Traffic;

/// What a job sends per iteration, and the share of its time for which it communicates.
type TrafficArg = (Py<Traffic>, f64);

fn traffic_from((matrix, communication): TrafficArg) -> PyResult<JobTraffic> {
    check_share("the part of its time for which a job communicates", communication)?;
    Ok(JobTraffic::new(&matrix.get().matrix, communication))
}

/// A machine, a policy and a queue. Report each event, then ask what starts. Times are in seconds.
#[pyclass(module = "topolane._engine")]
pub struct Scheduler {
    scheduler: topolane_scheduler::Scheduler,
    raised: Raised,
}

#[pymethods]
impl Scheduler {
    #[new]
    #[pyo3(signature = (machine, policy, queue, *, seed=0, routing="default"))]
    fn new(
        machine: &Machine,
        policy: &Bound<'_, PyAny>,
        queue: &str,
        seed: u64,
        routing: &str,
    ) -> PyResult<Scheduler> {
        let (policy, raised) = policy_on(&machine.fabric, policy, seed)?;
        let discipline = topolane_scheduler::queue(queue).ok_or_else(|| {
            bad_input(format!("unknown queue {queue:?}; there are {}", queue_names()))
        })?;
        let fabric = Arc::clone(&machine.fabric);
        Routing::check_name(routing)?;
        let reads_traffic = policy.reads_traffic();
        let mut scheduler = topolane_scheduler::Scheduler::new(fabric, policy, discipline);
        if reads_traffic {
            scheduler =
                scheduler.on_network(Routing::named(&machine.fabric, routing, seed)?.routing);
        }
        Ok(Scheduler { scheduler, raised })
    }

    /// Queues a request: behind those of higher priority and, within the same priority, in ascending `order`. It wants
    /// `nodes`, or up to `most` if they are free when its turn comes. Returns None, or the reason why it can never be
    /// placed; then it is not queued.
    #[pyo3(signature = (id, nodes, walltime, *, most=0, priority=0.0, order=0, begin=0.0, min_bandwidth=None, share=None, members=vec![], eligible=None, traffic=None, within=None, segment=None))]
    #[allow(clippy::too_many_arguments)]
    fn submit(
        &mut self,
        id: u64,
        nodes: u32,
        walltime: f64,
        most: u32,
        priority: f64,
        order: u64,
        begin: f64,
        min_bandwidth: Option<f64>,
        share: Option<ShareArg>,
        members: Vec<u32>,
        eligible: Option<Vec<u32>>,
        traffic: Option<TrafficArg>,
        within: Option<&str>,
        segment: Option<u32>,
    ) -> PyResult<Option<Refusal>> {
        let all = self.scheduler.occupancy().fabric().nodes();
        let named = eligible.iter().flatten().chain(&members);
        if let Some(node) = named.copied().find(|&node| node >= all) {
            return Err(bad_input(format!("node {node} is not among the {all} nodes")));
        }
        if nodes == 0
            || walltime.is_nan()
            || walltime < 0.0
            || !begin.is_finite()
            || priority.is_nan()
            || segment == Some(0)
        {
            return Err(bad_input(format!(
                "request {id}: {nodes} nodes for {walltime} s from {begin} s cannot be asked for"
            )));
        }
        let eligible = eligible.map(|nodes| Arc::new(NodeSet::of(all, nodes)));
        let min_bandwidth = min_bandwidth_from(min_bandwidth)?;
        let share = match share_from(share, self.scheduler.occupancy().fabric())? {
            Ok(share) => share,
            Err(refusal) => return Ok(Some(refusal.into())),
        };
        let request = Request {
            id,
            nodes,
            most,
            share,
            walltime,
            begin,
            order,
            members,
            eligible,
            min_bandwidth,
            segment,
            traffic: traffic.map(traffic_from).transpose()?,
            within: within_from(within, self.scheduler.occupancy().fabric())?,
            ..Request::default()
        };
        let answer = self.scheduler.submit(request, priority).err().map(Refusal::from);
        self.raised.check()?;
        Ok(answer)
    }

    /// Takes over a job that has been running on `nodes` (in rank order) since `start`, and owns `links` with a share
    /// of full bandwidth. If it waits here, it is removed from the queue.
    #[pyo3(signature = (id, nodes, start, walltime, *, share=None, links=vec![], bandwidth_share=1.0, traffic=None))]
    #[allow(clippy::too_many_arguments)]
    fn adopt(
        &mut self,
        id: u64,
        nodes: Vec<u32>,
        start: f64,
        walltime: f64,
        share: Option<ShareArg>,
        links: Vec<u32>,
        bandwidth_share: f64,
        traffic: Option<TrafficArg>,
    ) -> PyResult<()> {
        let all = self.scheduler.occupancy().fabric().links();
        if let Some(link) = links.iter().find(|&&link| link >= all) {
            return Err(bad_input(format!("job {id}: there is no cable {link}")));
        }
        let share = share_from(share, self.scheduler.occupancy().fabric())?;
        let share = share
            .map_err(|refusal| bad_input(format!("job {id} cannot be taken over: {refusal}")))?;
        let traffic = traffic.map(traffic_from).transpose()?;
        let nodes_held = nodes.len() as u32;
        let request =
            Request { id, nodes: nodes_held, walltime, share, traffic, ..Request::default() };
        let adopted =
            self.scheduler.adopt_with_links(&request, nodes, (links, bandwidth_share), start);
        adopted.map_err(|error| {
            let fabric = self.scheduler.occupancy().fabric();
            let name = if error.node < fabric.nodes() { fabric.node_name(error.node) } else { "?" };
            bad_input(format!("job {id} cannot be taken over: node {name} has not enough left"))
        })
    }

    /// Reports the end of a running job. Returns False if it was not running.
    fn complete(&mut self, id: u64) -> bool {
        self.scheduler.complete(id)
    }

    /// Removes a waiting request. Returns False if it is not waiting.
    fn cancel(&mut self, id: u64) -> bool {
        self.scheduler.cancel(id)
    }

    /// Changes the walltime of a waiting or running job. Returns False if there is no such job.
    fn set_walltime(&mut self, id: u64, walltime: f64) -> bool {
        self.scheduler.set_walltime(id, walltime)
    }

    /// Takes a node out of service or puts it back.
    fn set_in_service(&mut self, node: u32, in_service: bool) -> PyResult<()> {
        if node >= self.scheduler.occupancy().fabric().nodes() {
            return Err(bad_input(format!("node {node} is not on the machine")));
        }
        self.scheduler.set_in_service(node, in_service);
        Ok(())
    }

    /// Takes cables out of service or puts them back. Returns the running jobs that may use one that has just gone out
    /// of service.
    fn set_links_in_service(&mut self, links: Vec<u32>, in_service: bool) -> PyResult<Vec<u64>> {
        self.check_cables(&links)?;
        Ok(self.scheduler.set_links_in_service(&links, in_service))
    }

    /// The running jobs that own one of these cables or, if they own none, may use one.
    fn users_of(&self, links: Vec<u32>) -> PyResult<Vec<u64>> {
        self.check_cables(&links)?;
        Ok(self.scheduler.users_of(&links))
    }

    /// The cables out of service, ascending.
    #[getter]
    fn links_out(&self) -> Vec<u32> {
        self.scheduler.occupancy().links_out().collect()
    }

    /// The jobs that start at `now`, in order.
    fn start(&mut self, now: f64) -> PyResult<Vec<Decision>> {
        let decisions = self.scheduler.pass(now);
        self.raised.check()?;
        let fabric = self.scheduler.occupancy().fabric();
        Ok(decisions.into_iter().map(|decision| Decision::of(fabric, decision)).collect())
    }

    /// When a job may start even if nothing happens: the next begin time after `now`, or None.
    fn next_begin(&self, now: f64) -> Option<f64> {
        self.scheduler.next_begin(now)
    }

    /// The ids of the waiting requests, in queue order.
    #[getter]
    fn waiting(&self) -> Vec<u64> {
        self.scheduler.waiting().iter().map(|waiting| waiting.request.id).collect()
    }

    /// The decision, start and expected end of each running job, by expected end.
    #[getter]
    fn running(&self) -> Vec<(Decision, f64, f64)> {
        let fabric = self.scheduler.occupancy().fabric();
        let row = |job: &topolane_scheduler::RunningJob| {
            let decision = Decision::placed(fabric, job.id, Arc::clone(&job.placement));
            (decision, job.start, job.expected_end)
        };
        self.scheduler.running().jobs().iter().map(row).collect()
    }

    /// (id, links lent since the last pass, share of full bandwidth with them) of the running jobs with less than full
    /// bandwidth on their own links.
    #[getter]
    fn lent(&self) -> Vec<(u64, Vec<u32>, f64)> {
        let row =
            |lent: &topolane_placement::Lent| (lent.id, lent.links.clone(), lent.bandwidth_share);
        self.scheduler.last_lent().iter().map(row).collect()
    }

    /// (id, latest start) of the reservation of the queue's head in the last pass, or None.
    #[getter]
    fn reservation(&self) -> Option<(u64, f64)> {
        self.scheduler.last_pass().reservation.map(|promise| (promise.id, promise.at))
    }

    /// How the head waited in the last pass, under a policy with a rule for heads: (id, time by which the rule must
    /// place it). The time is None if the policy itself places it.
    #[getter]
    fn head_wait(&self) -> Option<(u64, Option<f64>)> {
        self.scheduler.last_pass().head_wait.map(|wait| (wait.id, wait.until))
    }

    /// Takes over another scheduler's decision about how its head waits.
    fn set_head_wait(&mut self, id: u64, until: Option<f64>) {
        self.scheduler.set_head_wait(HeadWait { id, until });
    }

    /// Predicts a program's run time for every k in the current state, or with `empty` on the machine without jobs: see
    /// `rank_k`. For a policy that reads traffic, `traffic` is what the job sends; its cost to others is counted for
    /// `walltime` seconds from `now` on (by default the time of the last pass).
    #[pyo3(signature = (routing, profile, *, cores="auto", model="full", jobs=vec![], id=0, eligible=None, empty=false, traffic=None, walltime=f64::INFINITY, now=None))]
    #[allow(clippy::too_many_arguments)]
    fn rank_k(
        &mut self,
        py: Python<'_>,
        routing: &Routing,
        profile: &Profile,
        cores: &str,
        model: &str,
        jobs: Vec<(Vec<u32>, Py<Traffic>)>,
        id: u64,
        eligible: Option<Vec<u32>>,
        empty: bool,
        traffic: Option<TrafficArg>,
        walltime: f64,
        now: Option<f64>,
    ) -> PyResult<Vec<Rank>> {
        if let Some(now) = now {
            self.scheduler.set_time(now);
        }
        let occupancy = self.scheduler.occupancy();
        let occupancy = if empty { occupancy.empty() } else { occupancy };
        let traffic = traffic.map(traffic_from).transpose()?;
        let request = Request { id, walltime, traffic, ..Request::default() };
        let arguments =
            RankKArguments { profile, cores, model, jobs, shared: false, request, eligible };
        let occupancy = Arc::new(occupancy.clone());
        arguments.of(py, &occupancy, self.scheduler.shared_policy(), &self.raised, routing)
    }

    /// Explains why a waiting request is not placed at this moment, and what is in its way. None if the policy would
    /// place it, so that only the queue order holds it back.
    ///
    /// Raises `KeyError` if it is not waiting.
    fn explain(&self, id: u64) -> PyResult<Option<Refusal>> {
        let mut waiting = self.scheduler.waiting().iter();
        let found = waiting
            .find(|waiting| waiting.request.id == id)
            .ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(id))?;
        let answer = self.scheduler.explain(&found.request);
        self.raised.check()?;
        Ok(answer.map(Refusal::from))
    }
}

impl Scheduler {
    fn check_cables(&self, links: &[u32]) -> PyResult<()> {
        let fabric = self.scheduler.occupancy().fabric();
        match links.iter().find(|&&link| fabric.cable_place(link).is_none()) {
            Some(link) => Err(bad_input(format!("there is no cable {link} of a tree"))),
            None => Ok(()),
        }
    }
}
