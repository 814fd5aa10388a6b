//! Predicts how long a program takes on given nodes while other jobs run.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Channel, Fabric, NodeIndex, Routing, Unreachable};
use topolane_traffic::{Contention, Flows, Phase, PhaseKind};

use super::profile::Profile;
use super::rounds::{MessageRound, rounds};

/// The job id of the program during a prediction.
const TRIAL: u64 = u64::MAX;

/// The predicted seconds of a run, by kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prediction {
    /// Seconds of computation.
    pub computation: f64,
    /// Seconds of collective operations.
    pub collective: f64,
    /// Seconds of messages between two ranks.
    pub point_to_point: f64,
    /// Seconds that other jobs lose meanwhile, divided by the fewest nodes that the program may have; 0 if not tracked.
    pub neighbours: f64,
}

impl Prediction {
    /// The total seconds of the run: no kinds of work overlap.
    pub fn total(&self) -> f64 {
        self.computation + self.collective + self.point_to_point
    }

    /// The number to compare: the seconds of the run plus those that other jobs lose.
    pub fn cost(&self) -> f64 {
        self.total() + self.neighbours
    }
}

/// Predicts the run of a program with rank r on `node_of[r]`. `contention` is unchanged afterwards.
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

/// The computation time on the slowest node: the longer of what a core computes and what all processes of the node move
/// through its memory.
fn computation(profile: &Profile, node_of: &[NodeIndex], fabric: &Fabric) -> f64 {
    let processes = f64::from(profile.processes());
    let reference = fabric.kinds().first().map_or(1.0, |kind| kind.core_speed);
    // Processes of one node have consecutive ranks.
    let on_node = node_of.chunk_by(|a, b| a == b).map(|ranks| {
        let kind = fabric.kind(ranks[0]);
        let core = profile.core_seconds / processes * reference / kind.core_speed;
        let memory =
            profile.memory_traffic / processes * ranks.len() as f64 / kind.memory_bandwidth;
        core.max(memory)
    });
    on_node.fold(0.0, f64::max)
}

/// Seconds of one iteration of a phase. With one round, it ends when the last message arrives. With several rounds, no
/// process waits between them: each channel carries the bytes of one round after another, at the speed of its
/// concurrent flows, and the busiest channel decides. Copies inside a node pass its memory, which counts as a channel.
fn of_phase(
    phase: &Phase,
    node_of: &[NodeIndex],
    routing: &dyn Routing,
    contention: &mut dyn Contention,
) -> Result<f64, Unreachable> {
    // Rounds of a valid matrix are valid, so this does not fail.
    let Ok(rounds) = rounds(phase) else { return Ok(0.0) };
    if let [round] = rounds.as_slice() {
        let sent = under_way(round, node_of, routing, contention)?;
        return Ok(sent.iter().map(|one| one.latency + one.bytes / one.rate).fold(0.0, f64::max));
    }
    let mut busy: HashMap<Over, f64> = HashMap::new();
    for round in &rounds {
        let mut passing: HashMap<Over, Sent> = HashMap::new();
        for one in under_way(round, node_of, routing, contention)? {
            for &(over, part) in &one.over {
                let sum = passing.entry(over).or_default();
                sum.bytes += part * one.bytes;
                sum.rate += part * one.rate;
                sum.latency = sum.latency.max(one.latency);
            }
        }
        for (over, sum) in passing {
            *busy.entry(over).or_default() += round.times * (sum.latency + sum.bytes / sum.rate);
        }
    }
    Ok(busy.values().copied().fold(0.0, f64::max))
}

/// What a message passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Over {
    Channel(Channel),
    Memory(NodeIndex),
}

/// The messages of one pair in a round, or all messages through one channel.
#[derive(Debug, Clone, Default)]
struct Sent {
    /// With the part of the message.
    over: Vec<(Over, f64)>,
    bytes: f64,
    rate: f64,
    latency: f64,
}

/// The messages of a round while other jobs run. In a round each process sends one message.
fn under_way(
    round: &MessageRound,
    node_of: &[NodeIndex],
    routing: &dyn Routing,
    contention: &mut dyn Contention,
) -> Result<Vec<Sent>, Unreachable> {
    let fabric = routing.fabric();
    let node = |rank: u32| node_of[rank as usize];
    let mut ways: Vec<((NodeIndex, NodeIndex), f64, Vec<Channel>)> = Vec::new();
    let mut latencies = Vec::new();
    for entry in round.traffic.entries().iter().filter(|entry| entry.bytes > 0.0) {
        let (from, to) = (node(entry.from), node(entry.to));
        let mut way = Vec::new();
        routing.path(from, to, &mut way)?;
        ways.push(((from, to), entry.bytes, way));
        let kind = fabric.kind(from);
        latencies.push(entry.messages * if from == to { kind.copy_latency } else { kind.latency });
    }
    let paths = ways.iter().map(|(ends, bytes, way)| (*ends, *bytes, way.as_slice()));
    let splits = routing.splits();
    let flows = Arc::new(Flows::of_paths(paths, splits.clone()).weighted());
    contention.enter(TRIAL, Arc::clone(&flows));
    let rates = contention.rates(TRIAL, &flows);
    contention.leave(TRIAL);
    let sent = ways.into_iter().zip(rates).zip(latencies).map(|((way, rate), latency)| {
        let ((from, to), bytes, channels) = way;
        let mut over = Vec::with_capacity(channels.len());
        for entry in channels {
            splits.each(entry, |channel, part| over.push((Over::Channel(channel), part)));
        }
        over.extend((from == to).then_some((Over::Memory(from), 1.0)));
        Sent { over, bytes, rate, latency }
    });
    Ok(sent.collect())
}
