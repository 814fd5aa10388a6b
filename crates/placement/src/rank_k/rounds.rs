//! Splits a phase into rounds: sets of messages that are sent at the same time.

use std::collections::BTreeMap;

use topolane_fabric::InputError;
use topolane_traffic::{Phase, PhaseKind, Traffic, TrafficEntry};

/// The most rounds of a phase that are evaluated.
const MOST: usize = 64;

/// The most messages of a phase that are evaluated, over all rounds.
const MOST_MESSAGES: usize = 1 << 18;

/// Messages that are sent at the same time, and the number of rounds that this one represents.
pub struct MessageRound {
    pub traffic: Traffic,
    pub times: f64,
}

/// Splits a phase into rounds. Messages between two ranks are all sent at once, in one round. Collective operations
/// have rounds in which a rank sends to at most one other: by the distance around the ring, `to - from`, or as in
/// recursive doubling, `from xor to`, whichever takes fewer rounds. If there are more than [`MOST`] rounds, an evenly
/// spread sample represents them; if there are very many messages, a sample represents these.
pub fn rounds(phase: &Phase) -> Result<Vec<MessageRound>, InputError> {
    let ranks = phase.traffic.ranks();
    if phase.kind == PhaseKind::PointToPoint {
        let traffic = phase.traffic.thinned(MOST_MESSAGES);
        return Ok(vec![MessageRound { traffic, times: 1.0 }]);
    }
    let shift = |entry: &TrafficEntry| (entry.to + ranks - entry.from) % ranks;
    let mut by_round = classes(&phase.traffic, shift);
    if ranks.is_power_of_two() {
        let pairwise = classes(&phase.traffic, |entry| entry.from ^ entry.to);
        if pairwise.len() < by_round.len() {
            by_round = pairwise;
        }
    }
    let all: Vec<Vec<TrafficEntry>> = by_round.into_values().collect();
    let looked_at = all.len().min(MOST);
    let times = all.len() as f64 / looked_at.max(1) as f64;
    let round = |index: usize| {
        let entries = all[index * all.len() / looked_at].iter().copied();
        let traffic = Traffic::new(ranks, entries)?.thinned(MOST_MESSAGES / looked_at);
        Ok(MessageRound { traffic, times })
    };
    (0..looked_at).map(round).collect()
}

fn classes(
    traffic: &Traffic,
    class: impl Fn(&TrafficEntry) -> u32,
) -> BTreeMap<u32, Vec<TrafficEntry>> {
    let mut classes: BTreeMap<u32, Vec<TrafficEntry>> = BTreeMap::new();
    for entry in traffic.entries() {
        classes.entry(class(entry)).or_default().push(*entry);
    }
    classes
}
