//! Chooses the cores per node of every job when it is submitted (rank k).

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, InputError, NodeIndex, NodeKind};
use topolane_placement::rank_k::{
    CoresPerNode, Misfit, PredictionSetting, Profile, Rank, RankKRequest, best, rank_k,
};
use topolane_placement::{Occupancy, Placement, Policy, Request};
use topolane_traffic::Contention;

use crate::network::Network;
use crate::workload::{Job, Workload};

/// The chosen cores per node of a job, and what follows from them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Width {
    /// The number of processes of the job.
    pub processes: u32,
    /// The cores per node.
    pub k: u32,
    /// The run time alone divided by the run time in the log.
    pub stretch: f64,
}

impl Width {
    /// The node of every process.
    pub fn node_of(&self, placement: &Placement) -> Vec<NodeIndex> {
        (0..self.processes).map(|rank| placement.nodes()[(rank / self.k) as usize]).collect()
    }
}

/// Chooses cores per node. A job of the log is assumed to have used all `full` cores of its nodes. The network's
/// communication share of its run time alone was communication by its pattern; the rest was computation, which takes
/// equally long with fewer processes per node.
pub(crate) struct Widths<'a> {
    network: &'a Network,
    cores: CoresPerNode,
    full: u32,
    seed: u64,
    /// A contention model without jobs.
    idle: Box<dyn Contention>,
    /// Seconds of one iteration alone on the empty machine, by (pattern, processes, k).
    alone: HashMap<(usize, u32, u32), Option<f64>>,
}

impl<'a> Widths<'a> {
    /// Returns the chooser if the network asks for one. `as_logged` says that nodes or starts come from the log.
    ///
    /// # Errors
    /// Starts or nodes come from the log, or more cores per node are wanted than any node has.
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

    /// The number of ranks that a job has on each of its nodes in the log.
    pub fn ranks_of_each_node(&self, job: &Job) -> u32 {
        if job.share.is_whole() && job.run > 0.0 { self.full } else { 1 }
    }

    /// Returns the width with the shortest predicted run in the current state; if none fits now, on the empty machine
    /// with the same neighbours. `None` leaves the job unchanged: it shares its nodes, or no width fits.
    ///
    /// # Errors
    /// The errors of the job's pattern.
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
                PredictionSetting { occupancy, policy: &**policy, routing },
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

    /// Seconds of communication in one iteration, alone, with k processes per node.
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
        let setting =
            PredictionSetting { occupancy: occupancy.empty(), policy: &**policy, routing };
        let ranks = rank_k(wanted, setting, &mut *self.idle, CoresPerNode::Fixed(key.2));
        let seconds =
            |rank: &Rank| rank.outcome.as_ref().ok().map(|(_, predicted)| predicted.total());
        let found = ranks.first().and_then(seconds);
        self.alone.insert(key, found);
        found
    }
}
