//! What jobs cost each other where they share channels: one file per model, one line each in
//! [`MODELS`].

mod congestion;
mod max_min;

use std::sync::Arc;

use topolane_fabric::Routing;

use crate::flows::Flows;

pub use congestion::Congestion;
pub use max_min::{Filling, MaxMin};

/// The jobs present, their flows, and what they cost each other. All flows of a job's iteration
/// are under way at once, and the iteration ends with its last flow.
pub trait Contention: Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// A job begins; one of that identity must not be present.
    fn enter(&mut self, job: u64, flows: Arc<Flows>);

    /// A job ends; nothing happens if it is not present.
    fn leave(&mut self, job: u64);

    /// The jobs whose slowdown has changed since the last call, by identity, and their slowdown
    /// while all communicate: at least 1, and exactly 1 for a job that shares nothing. A job that has just begun is
    /// among them only if it is slowed.
    fn settle(&mut self) -> Vec<(u64, f64)>;

    /// Seconds of an iteration's communication now; 0 for a job that sends nothing.
    fn time(&mut self, job: u64) -> f64;

    /// Bytes per second of each flow of a job now, in the order of its [`Flows`]; infinite for
    /// what the model does not limit.
    fn rates(&mut self, job: u64) -> Vec<f64>;
}

/// A model that can be asked for by name.
pub struct ModelInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Builds it for the channels of a routing.
    pub build: fn(routing: &dyn Routing) -> Box<dyn Contention>,
}

/// The models of links.
pub const MODELS: &[ModelInfo] = &[
    ModelInfo {
        name: "congestion",
        summary: "load of each link, shared in proportion to what each job wants: fast",
        build: |routing| Box::new(Congestion::new(routing)),
    },
    ModelInfo {
        name: "max-min",
        summary: "max-min fair rate of every flow (progressive filling)",
        build: |routing| Box::new(MaxMin::new(routing)),
    },
];

/// The model of that name; `None` where there is none.
pub fn contention(name: &str, routing: &dyn Routing) -> Option<Box<dyn Contention>> {
    let info = MODELS.iter().find(|info| info.name == name)?;
    Some((info.build)(routing))
}
