//! Cores per node chosen for every job at its submission (rank k).

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, InputError, NodeIndex, NodeKind};
use topolane_placement::rank_k::{
    CoresPerNode, Misfit, Profile, Rank, RankKRequest, Setting, best, rank_k,
};
use topolane_placement::{Occupancy, Placement, Policy, Request};
use topolane_traffic::Contention;

use crate::network::Network;
use crate::workload::{Job, Workload};

/// What a job becomes with another number of cores of each node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Width {
    /// Processes of the job.
    pub processes: u32,
    /// Cores of each node.
    pub k: u32,
    /// How many times longer than in the log it runs when alone.
    pub stretch: f64,
}

impl Width {
    /// The node of every process.
    pub fn node_of(&self, placement: &Placement) -> Vec<NodeIndex> {
        (0..self.processes).map(|rank| placement.nodes()[(rank / self.k) as usize]).collect()
    }
}

/// Chooses widths. A job of the log ran with all `full` cores of its nodes; of its run time there,
/// alone, the network's fraction was communication by its pattern, and the rest computation that is
/// as long with fewer processes a node.
pub(crate) struct Widths<'a> {
    network: &'a Network,
    cores: CoresPerNode,
    full: u32,
    seed: u64,
    /// No job on any channel.
    idle: Box<dyn Contention>,
    /// Seconds of one iteration alone on the empty machine, by (pattern, processes, k).
    alone: HashMap<(usize, u32, u32), Option<f64>>,
}

impl<'a> Widths<'a> {
    /// For a run on a network that asks for it; `as_logged` if the log says its nodes or starts.
    ///
    /// # Errors
    /// A run as logged, and more cores of each node than any node has.
    pub fn of(
        network: Option<&'a Network>,
        workload: &Workload,
        fabric: &Fabric,
        as_logged: bool,
        seed: u64,
    ) -> Result<Option<Self>, InputError> {
        let arguments = network.and_then(|network| Some((network, network.cores_per_node?)));
        let Some((network, cores)) = arguments else { return Ok(None) };
        if as_logged {
            let message =
                "cores per node cannot be chosen where the log says the nodes or the start";
            return Err(InputError::whole(message));
        }
        let most = fabric.kinds().iter().map(NodeKind::cores).max().unwrap_or(1);
        if let CoresPerNode::Fixed(wanted) = cores
            && wanted > most
        {
            return Err(InputError::whole(Misfit::Cores { wanted, most }.to_string()));
        }
        let first = fabric.kinds().first().map_or(1, NodeKind::cores);
        let full = if workload.cores_per_node > 1 { workload.cores_per_node } else { first };
        let idle = (network.model.build)(&*network.routing);
        let alone = HashMap::new();
        Ok(Some(Widths { network, cores, full: full.min(first), seed, idle, alone }))
    }

    /// How many ranks a job has on each of its nodes in the log.
    pub fn ranks_of_each_node(&self, job: &Job) -> u32 {
        if job.share.is_whole() && job.run > 0.0 { self.full } else { 1 }
    }

    /// The width that is predicted to run shortest in the state as it is, or, where none fits now,
    /// on the empty machine next to the same neighbours. `None` leaves the job as it is: one that
    /// shares its nodes, or that no width fits.
    ///
    /// # Errors
    /// What the job's pattern refuses.
    pub fn choose(
        &mut self,
        request: &Request,
        job: &Job,
        occupancy: &Occupancy,
        policy: &Arc<dyn Policy>,
        contention: &mut dyn Contention,
    ) -> Result<Option<Width>, InputError> {
        if !job.share.is_whole() || job.run <= 0.0 {
            return Ok(None);
        }
        let processes = job.nodes.saturating_mul(self.full);
        let pattern = self.network.pattern_of(job, self.seed);
        let mut profile =
            Profile::of(&self.network.patterns[pattern], processes, 1.0, self.seed)
                .map_err(|error| InputError::whole(format!("job {}: {}", job.id, error.message)))?;
        let as_logged = (pattern, processes, self.full);
        let Some(logged) = self.alone(as_logged, &profile, request, occupancy, policy) else {
            return Ok(None);
        };
        let communication = self.network.communication * job.run;
        profile.iterations = if logged > 0.0 { communication / logged } else { 0.0 };
        let wanted = RankKRequest { request, profile: &profile, shared: false };
        let tried = |occupancy: &Occupancy, contention: &mut dyn Contention| {
            let routing = &*self.network.routing;
            let ranks = rank_k(
                wanted,
                Setting { occupancy, policy: &**policy, routing },
                contention,
                self.cores,
            );
            best(&ranks).map(|rank| rank.k)
        };
        let now = tried(occupancy, &mut *contention);
        let Some(k) = now.or_else(|| tried(occupancy.empty(), contention)) else { return Ok(None) };
        let iterations = std::mem::replace(&mut profile.iterations, 1.0);
        let chosen = self.alone((pattern, processes, k), &profile, request, occupancy, policy);
        let saved = iterations * (logged - chosen.unwrap_or(logged));
        Ok(Some(Width { processes, k, stretch: 1.0 - saved / job.run }))
    }

    /// Seconds of one iteration's communication alone with k processes a node.
    fn alone(
        &mut self,
        key: (usize, u32, u32),
        profile: &Profile,
        request: &Request,
        occupancy: &Occupancy,
        policy: &Arc<dyn Policy>,
    ) -> Option<f64> {
        if let Some(known) = self.alone.get(&key) {
            return *known;
        }
        let wanted = RankKRequest { request, profile, shared: false };
        let routing = &*self.network.routing;
        let setting = Setting { occupancy: occupancy.empty(), policy: &**policy, routing };
        let ranks = rank_k(wanted, setting, &mut *self.idle, CoresPerNode::Fixed(key.2));
        let seconds =
            |rank: &Rank| rank.outcome.as_ref().ok().map(|(_, predicted)| predicted.total());
        let found = ranks.first().and_then(seconds);
        self.alone.insert(key, found);
        found
    }
}
