//! Contention models: how jobs that share channels slow each other down. One file per model, one line each in
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

/// The present jobs with their flows, and how they slow each other down. All flows of a job's iteration start at the
/// same time, and the iteration ends with its last flow.
pub trait Contention: Send {
    /// The name of the model.
    fn name(&self) -> &'static str;

    /// Adds a job; its id must not be present.
    fn enter(&mut self, job: u64, flows: Arc<Flows>);

    /// Adds a job whose ranks all send each other the same amount. Returns false, with nothing changed, if the model
    /// needs every single flow.
    fn enter_exchange(&mut self, job: u64, exchange: &Exchange) -> bool {
        let _ = (job, exchange);
        false
    }

    /// Removes a job; does nothing if it is not present.
    fn leave(&mut self, job: u64);

    /// The jobs whose slowdown has changed since the last call, by id, with their slowdown while all jobs communicate.
    /// It is at least 1, and exactly 1 for a job that shares nothing. A job that was just added is only included if it
    /// is slowed down.
    fn settle(&mut self) -> Vec<(u64, f64)>;

    /// Seconds of a job's communication per iteration now; 0 for a job that sends nothing.
    fn time(&mut self, job: u64) -> f64;

    /// The rate of each flow of a job now, in bytes per second, in the order of `flows`, with which it was added.
    /// Infinite if the model does not limit a flow. Empty for a job that is not present.
    fn rates(&mut self, job: u64, flows: &Flows) -> Vec<f64>;
}

/// A registered contention model.
pub struct ModelInfo {
    /// The name of the model.
    pub name: &'static str,
    /// What the model does, in one line.
    pub summary: &'static str,
    /// Whether the model covers shared links, and not only the inside of nodes.
    pub of_links: bool,
    /// Builds the model for the channels of a routing.
    pub build: fn(routing: &dyn Routing) -> Box<dyn Contention>,
}

/// All contention models: of links, of the inside of nodes, and combinations.
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

/// Whether a slowdown differs from the last one reported. Records it as reported.
fn is_news(reported: &mut f64, now: f64) -> bool {
    let news = reported.to_bits() != now.to_bits();
    *reported = now;
    news
}

/// Returns the model of this name; `None` if there is none.
pub fn contention(name: &str, routing: &dyn Routing) -> Option<Box<dyn Contention>> {
    let info = MODELS.iter().find(|info| info.name == name)?;
    Some((info.build)(routing))
}
