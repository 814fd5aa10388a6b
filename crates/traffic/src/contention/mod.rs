//! What jobs cost each other where they share channels: one file per model, one line each in
//! [`MODELS`].

mod conflicts;
mod congestion;
mod ethernet;
mod filling;
mod foresee;
mod infiniband;
mod interface;
mod max_min;
mod per_node;
mod room;
mod shared_memory;
mod together;

use std::sync::Arc;

use topolane_fabric::{Penalty, Routing};

use crate::exchange::Exchange;
use crate::flows::Flows;

pub use congestion::Congestion;
pub use filling::Filling;
pub use foresee::{Foreseen, Outlook};
pub use interface::Interfaces;
pub use max_min::MaxMin;
pub use per_node::{NodeRule, PerNode};
pub use shared_memory::{PASSES, SharedMemory};
pub use together::Together;

/// The jobs present, their flows, and what they cost each other. All flows of a job's iteration
/// are under way at once, and the iteration ends with its last flow.
pub trait Contention: Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// A job begins; one of that identity must not be present.
    fn enter(&mut self, job: u64, flows: Arc<Flows>);

    /// A job begins whose ranks all send each other the same. False, and nothing happens, if the model needs every flow.
    fn enter_exchange(&mut self, job: u64, exchange: &Exchange) -> bool {
        let _ = (job, exchange);
        false
    }

    /// A job ends; nothing happens if it is not present.
    fn leave(&mut self, job: u64);

    /// The jobs whose slowdown has changed since the last call, by identity, and their slowdown
    /// while all communicate: at least 1, and exactly 1 for a job that shares nothing. A job that
    /// has just begun is among them only if it is slowed.
    fn settle(&mut self) -> Vec<(u64, f64)>;

    /// Seconds of an iteration's communication now; 0 for a job that sends nothing.
    fn time(&mut self, job: u64) -> f64;

    /// Bytes per second of each flow of a job now, in the order of `flows`, which it entered with;
    /// infinite for what the model does not limit. Nothing for a job that is not present.
    fn rates(&mut self, job: u64, flows: &Flows) -> Vec<f64>;
}

/// A model that can be asked for by name.
pub struct ModelInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Whether it says what sharing links costs, not the inside of nodes alone.
    pub of_links: bool,
    /// Builds it for the channels of a routing.
    pub build: fn(routing: &dyn Routing) -> Box<dyn Contention>,
}

/// The models of links, of the inside of nodes, and all of them together.
pub const MODELS: &[ModelInfo] = &[
    ModelInfo {
        name: "congestion",
        summary: "max-min fair on each link by itself, among what jobs want when alone: fast",
        of_links: true,
        build: |routing| Box::new(Congestion::new(routing)),
    },
    ModelInfo {
        name: "max-min",
        summary: "max-min fair rate of every flow by its part of what its node sends",
        of_links: true,
        build: |routing| Box::new(MaxMin::new(routing)),
    },
    ModelInfo {
        name: "max-min-flows",
        summary: "max-min fair rate of every flow, all alike, as TCP connections share",
        of_links: true,
        build: |routing| Box::new(MaxMin::of_flows(routing)),
    },
    ModelInfo {
        name: "shared-memory",
        summary: "copies inside a node share its memory bandwidth; nothing else costs",
        of_links: false,
        build: |routing| {
            let fabric = routing.fabric();
            Box::new(PerNode::new(fabric, SharedMemory::new(Arc::clone(fabric))))
        },
    },
    ModelInfo {
        name: "infiniband",
        summary: "penalties of a shared InfiniBand interface (Vienne 2010); nothing else costs",
        of_links: false,
        build: |routing| interfaces(routing, Some(Penalty::infiniband())),
    },
    ModelInfo {
        name: "ethernet",
        summary: "penalties of a shared Gigabit Ethernet interface (Vienne et al. 2008); nothing else costs",
        of_links: false,
        build: |routing| interfaces(routing, Some(Penalty::ethernet())),
    },
    ModelInfo {
        name: "full",
        summary: "max-min with shared memory and the penalties that the nodes' kinds name: slow",
        of_links: true,
        build: |routing| {
            let fabric = routing.fabric();
            let parts = || -> Vec<Box<dyn Contention>> {
                let copies = SharedMemory::new(Arc::clone(fabric));
                vec![
                    Box::new(MaxMin::new(routing)),
                    Box::new(PerNode::new(fabric, copies)),
                    interfaces(routing, None),
                ]
            };
            Box::new(Together::new("full", parts))
        },
    },
];

fn interfaces(routing: &dyn Routing, all: Option<Penalty>) -> Box<dyn Contention> {
    let fabric = routing.fabric();
    Box::new(PerNode::new(fabric, Interfaces::new(Arc::clone(fabric), all)))
}

/// Whether a slowdown differs from the one last reported of the job; records it as reported.
fn is_news(reported: &mut f64, now: f64) -> bool {
    let news = reported.to_bits() != now.to_bits();
    *reported = now;
    news
}

/// The model of that name; `None` where there is none.
pub fn contention(name: &str, routing: &dyn Routing) -> Option<Box<dyn Contention>> {
    let info = MODELS.iter().find(|info| info.name == name)?;
    Some((info.build)(routing))
}
