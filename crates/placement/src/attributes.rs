//! Whose a job is, and under which rules of the centre it runs.

use std::sync::Arc;

/// What a queue may want to know of a job and no policy reads. Empty names are unknown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes {
    /// The partition it was submitted to.
    pub partition: Arc<str>,
    /// Who submitted it.
    pub user: Arc<str>,
    /// The account that pays for it.
    pub account: Arc<str>,
    /// Its quality of service.
    pub qos: Arc<str>,
    /// The reservation it runs in.
    pub reservation: Arc<str>,
    /// What its owner takes from its priority.
    pub nice: i64,
    /// Processors it asked for; `None` if that is not known.
    pub processors: Option<u64>,
    /// Licences it asked for, by name.
    pub licenses: Vec<(Arc<str>, u64)>,
    /// Whether it does not start again if its run is ended early.
    pub no_requeue: bool,
    /// When it got its place among jobs of the same priority, seconds; `None`: when it became eligible.
    pub queued: Option<f64>,
}

impl Attributes {
    /// The same for a job that comes again: its place is behind all that came before.
    #[must_use]
    pub fn queued_again(&self, now: f64) -> Self {
        Attributes { queued: self.queued.map(|_| now), ..self.clone() }
    }
}
