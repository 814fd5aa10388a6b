//! Partitions of nodes and links: what docs/explanation/dedicated-links.md proves, and the search for them.

mod board;
mod closed;
mod common;
mod condition;
pub(crate) mod even;
mod even_layout;
mod even_pods;
mod fill;
mod lending;
mod limits;
mod need;
mod odd;
mod odd_pods;
mod partition;
mod plan;
mod pod;
mod site;
mod tidy;
mod violation;
mod waste;

pub(crate) use board::Board;
pub use condition::check;
pub(crate) use even::{Across, Even};
pub(crate) use even_pods::several_pods;
pub use lending::{Lent, lend};
pub(crate) use limits::limit_for;
pub use limits::{Limit, LimitKind, limits};
pub(crate) use plan::Plan;
pub use violation::Violation;
pub(crate) use waste::waste;

use board::Leaf;

/// The best partition for what the board asks: on one leaf if one has room, else in one pod, else over several;
/// and whether the search was cut short.
pub(crate) fn search(board: &Board<'_>) -> (Option<Plan>, bool) {
    if let Some(plan) = Plan::on_one_leaf(board) {
        return (Some(plan), false);
    }
    let in_pods = best(board.pods().map(|leaves| pod::in_pod(board, leaves)));
    if in_pods.0.is_some() || board.fabric.depth() < 3 {
        return in_pods;
    }
    let same_top = |one: &Leaf, other: &Leaf| top_of(board, one) == top_of(board, other);
    let tops = board.leaves.chunk_by(same_top);
    let across = best(tops.map(|leaves| site::across_pods(board, leaves)));
    (across.0, across.1 || in_pods.1)
}

/// The plan of least cost, the first among equals; whether any search was cut short.
fn best(found: impl Iterator<Item = (Option<Plan>, bool)>) -> (Option<Plan>, bool) {
    found.fold((None, false), |(best, cut), (plan, was_cut)| {
        let cost = |plan: &Option<Plan>| plan.as_ref().map_or(f64::INFINITY, |plan| plan.cost);
        (if cost(&plan) < cost(&best) { plan } else { best }, cut || was_cut)
    })
}

/// The group of the third level that a leaf is in.
fn top_of(board: &Board<'_>, leaf: &Leaf) -> u32 {
    board.fabric.parent(2, leaf.pod)
}
