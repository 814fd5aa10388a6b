//! Rank k: how many cores to take from each node.
//!
//! A program of P processes on nodes of q cores may take k cores from each of ceil(P / k) nodes, k from 1 to q (the
//! algorithm of rank k). With few cores per node, few processes share its interface and memory; with many, more
//! messages stay inside. [`rank_k`] predicts the run time for every k on the nodes that the policy would choose now;
//! the smallest wins. If the occupancy tracks traffic, the time that running jobs lose is added.

mod misfit;
mod predict;
mod profile;
mod rounds;

use std::sync::Arc;

use topolane_fabric::{NodeIndex, NodeSet, Routing};
use topolane_traffic::{Contention, Traffic};

use crate::job_traffic::MOST_ENTRIES;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::request::{Request, Share};

pub use misfit::Misfit;
pub use predict::Prediction;
pub use profile::Profile;

/// The most traffic entries of all running jobs together that a prediction uses, and the fewest of one job.
const MOST_PRESENT: usize = 1 << 14;
const FEWEST_PRESENT: usize = 64;

/// Reduces large traffic matrices of running jobs to samples. Every k and every round of messages is compared with all
/// entries, so this bounds the time of a prediction.
pub fn thin(jobs: &mut [(Vec<NodeIndex>, Arc<Traffic>)]) {
    let most = (MOST_PRESENT / jobs.len().max(1)).clamp(FEWEST_PRESENT, MOST_ENTRIES);
    for (_, traffic) in jobs {
        if traffic.entries().len() > most {
            *traffic = Arc::new(traffic.thinned(most));
        }
    }
}

/// How the number of cores per node is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoresPerNode {
    /// The k with the shortest predicted run.
    Auto,
    /// Always this k: the algorithm of rank k.
    Fixed(u32),
}

impl CoresPerNode {
    /// Parses `auto`, `fixed:k`, or the number alone; `None` for other text.
    pub fn parse(text: &str) -> Option<CoresPerNode> {
        if text == "auto" {
            return Some(CoresPerNode::Auto);
        }
        let number = text.strip_prefix("fixed:").unwrap_or(text).parse().ok();
        number.filter(|&k| k > 0).map(CoresPerNode::Fixed)
    }
}

/// A request whose cores per node are to be chosen.
#[derive(Debug, Clone, Copy)]
pub struct RankKRequest<'a> {
    /// Id, eligible nodes, times and traffic; its number of nodes and its share are ignored.
    pub request: &'a Request,
    /// What the program computes and sends.
    pub profile: &'a Profile,
    /// Whether other jobs may use the remaining cores of the nodes; if not, the job holds its nodes whole.
    pub shared: bool,
}

/// The state and the models that predictions use.
#[derive(Clone, Copy)]
pub struct PredictionSetting<'a> {
    /// Which job holds what.
    pub occupancy: &'a Occupancy,
    /// The policy that chooses the nodes for every k.
    pub policy: &'a dyn Policy,
    /// The routing between the nodes.
    pub routing: &'a dyn Routing,
}

/// One k and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// The number of cores per node.
    pub k: u32,
    /// The nodes and the predicted run time there, or the reason why this k is not possible.
    pub outcome: Result<(Placement, Prediction), Misfit>,
}

/// Returns the outcome for every k from 1 to the cores of the largest node or the number of processes, ascending; or
/// only for the fixed k. `contention` holds the running jobs and is unchanged afterwards.
pub fn rank_k(
    wanted: RankKRequest<'_>,
    setting: PredictionSetting<'_>,
    contention: &mut dyn Contention,
    cores: CoresPerNode,
) -> Vec<Rank> {
    let largest = most_cores(setting.occupancy);
    let ks = match cores {
        CoresPerNode::Auto => 1..=largest.min(wanted.profile.processes()).max(1),
        CoresPerNode::Fixed(k) => k..=k,
    };
    ks.map(|k| Rank { k, outcome: one(wanted, setting, contention, k) }).collect()
}

/// The k of least predicted cost ([`Prediction::cost`]); among equals the one on fewest nodes. `None` if none is
/// possible.
pub fn best(ranks: &[Rank]) -> Option<&Rank> {
    let cost = |rank: &Rank| rank.outcome.as_ref().map_or(f64::INFINITY, |(_, p)| p.cost());
    let fitting = ranks.iter().rev().filter(|rank| rank.outcome.is_ok());
    fitting.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

fn one(
    wanted: RankKRequest<'_>,
    setting: PredictionSetting<'_>,
    contention: &mut dyn Contention,
    k: u32,
) -> Result<(Placement, Prediction), Misfit> {
    let request = request_of(wanted, setting.occupancy, k)?;
    let placement = setting.policy.place(&request, setting.occupancy).map_err(Misfit::Refused)?;
    let processes = 0..wanted.profile.processes();
    let node_of: Vec<NodeIndex> =
        processes.map(|rank| placement.nodes()[(rank / k) as usize]).collect();
    let mut prediction = predict::run(wanted.profile, &node_of, setting.routing, contention)?;
    let lost = setting.occupancy.lost_by_others(&request, placement.nodes());
    if lost > 0.0 {
        let fewest = wanted.profile.processes().div_ceil(most_cores(setting.occupancy));
        prediction.neighbours = lost * prediction.total() / f64::from(fewest);
    }
    Ok((placement, prediction))
}

fn most_cores(occupancy: &Occupancy) -> u32 {
    let kinds = occupancy.fabric().kinds().iter();
    kinds.map(topolane_fabric::NodeKind::cores).max().unwrap_or(1).max(1)
}

/// The request for k processes per node, on nodes that can hold k.
fn request_of(wanted: RankKRequest<'_>, occupancy: &Occupancy, k: u32) -> Result<Request, Misfit> {
    let fabric = occupancy.fabric();
    let memory = u64::from(k).saturating_mul(wanted.profile.memory);
    let kinds = fabric.kinds();
    let cores = kinds.iter().map(topolane_fabric::NodeKind::cores).max().unwrap_or_default();
    if k > cores {
        return Err(Misfit::Cores { wanted: k, most: cores });
    }
    let wide = kinds.iter().filter(|kind| kind.cores() >= k);
    let most = wide.map(|kind| kind.memory).max().unwrap_or_default();
    if memory > most {
        return Err(Misfit::Memory { wanted: memory, most });
    }
    let holds = |node| fabric.kind(node).cores() >= k && fabric.kind(node).memory >= memory;
    let mut request = Request {
        nodes: wanted.profile.processes().div_ceil(k),
        share: if wanted.shared { Share::part(k, memory) } else { Share::Whole },
        stacked: false,
        // The number of ranks per node is still open, so the routing chooses the rails, as in the prediction.
        traffic: wanted.request.traffic.clone().map(|traffic| traffic.on_rails(false)),
        ..wanted.request.clone()
    };
    if kinds.iter().any(|kind| kind.cores() < k || kind.memory < memory) {
        let eligible = |&node: &NodeIndex| {
            holds(node) && request.eligible.as_ref().is_none_or(|set| set.contains(node))
        };
        let nodes = NodeSet::of(fabric.nodes(), (0..fabric.nodes()).filter(eligible));
        request.eligible = Some(Arc::new(nodes));
    }
    Ok(request)
}
