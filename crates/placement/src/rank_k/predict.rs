//! How long a program takes on given nodes, beside those that run.

use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, Routing, Unreachable};
use topolane_traffic::{Contention, Flows, Phase, PhaseKind};

use super::profile::Profile;
use super::rounds::{Round, rounds};

/// The identity under which a program is tried among the jobs present.
const TRIAL: u64 = u64::MAX;

/// Seconds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prediction {
    /// Of computation.
    pub computation: f64,
    /// Of collective operations.
    pub collective: f64,
    /// Of messages between two ranks.
    pub point_to_point: f64,
}

impl Prediction {
    /// Seconds in all: nothing overlaps.
    pub fn total(&self) -> f64 {
        self.computation + self.collective + self.point_to_point
    }
}

/// What the profile takes with rank r on `node_of[r]`; `contention` is left as it was.
pub fn run(
    profile: &Profile,
    node_of: &[NodeIndex],
    routing: &dyn Routing,
    contention: &mut dyn Contention,
) -> Result<Prediction, Unreachable> {
    let fabric = routing.fabric();
    let mut prediction =
        Prediction { computation: computation(profile, node_of, fabric), ..Prediction::default() };
    for phase in &profile.phases {
        let seconds = profile.iterations * of_phase(phase, node_of, routing, contention)?;
        match phase.kind {
            PhaseKind::Collective => prediction.collective += seconds,
            PhaseKind::PointToPoint => prediction.point_to_point += seconds,
        }
    }
    Ok(prediction)
}

/// On the slowest node: the longer of what a core computes and what all processes of the node
/// together move through its memory.
fn computation(profile: &Profile, node_of: &[NodeIndex], fabric: &Fabric) -> f64 {
    let processes = f64::from(profile.processes());
    let reference = fabric.kinds().first().map_or(1.0, |kind| kind.core_speed);
    // The processes of a node follow each other.
    let on_node = node_of.chunk_by(|a, b| a == b).map(|ranks| {
        let kind = fabric.kind(ranks[0]);
        let core = profile.core_seconds / processes * reference / kind.core_speed;
        let memory =
            profile.memory_traffic / processes * ranks.len() as f64 / kind.memory_bandwidth;
        core.max(memory)
    });
    on_node.fold(0.0, f64::max)
}

/// One iteration of a phase: its rounds one after the other, copies inside nodes going on while
/// the network sends.
fn of_phase(
    phase: &Phase,
    node_of: &[NodeIndex],
    routing: &dyn Routing,
    contention: &mut dyn Contention,
) -> Result<f64, Unreachable> {
    // Entries of a matrix that is sound make matrices that are.
    let Ok(rounds) = rounds(phase) else { return Ok(0.0) };
    let (mut inside, mut between) = (0.0, 0.0);
    for round in rounds {
        let seconds = of_round(&round, node_of, routing, contention)?;
        inside += round.times * seconds.0;
        between += round.times * seconds.1;
    }
    Ok(f64::max(inside, between))
}

/// Seconds until the last copy inside a node is done, and until the last message between nodes.
fn of_round(
    round: &Round,
    node_of: &[NodeIndex],
    routing: &dyn Routing,
    contention: &mut dyn Contention,
) -> Result<(f64, f64), Unreachable> {
    let flows = Arc::new(Flows::new(&round.traffic, node_of, routing)?);
    contention.enter(TRIAL, Arc::clone(&flows));
    let rates = contention.rates(TRIAL);
    contention.leave(TRIAL);
    let fabric = routing.fabric();
    let (mut inside, mut between) = (0.0_f64, 0.0_f64);
    let sent = round.traffic.entries().iter().filter(|entry| entry.bytes > 0.0);
    for ((flow, rate), entry) in rates.iter().enumerate().zip(sent) {
        let (from, to) = flows.ends(flow);
        let (kind, seconds) = (fabric.kind(from), flows.bytes(flow) / rate);
        if from == to {
            inside = inside.max(entry.messages * kind.copy_latency + seconds);
        } else {
            between = between.max(entry.messages * kind.latency + seconds);
        }
    }
    Ok((inside, between))
}
