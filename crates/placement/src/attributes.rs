//! The owner of a job, and the rules of the centre that apply to it.

use std::sync::Arc;

/// Facts about a job that a queue may use and that no policy reads. An empty name means that it is unknown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes {
    /// The partition that the job was submitted to.
    pub partition: Arc<str>,
    /// The user who submitted the job.
    pub user: Arc<str>,
    /// The account that pays for the job.
    pub account: Arc<str>,
    /// The quality of service (QOS) of the job.
    pub qos: Arc<str>,
    /// The reservation that the job runs in.
    pub reservation: Arc<str>,
    /// The amount that the user subtracts from the job's priority (`nice`).
    pub nice: i64,
    /// Processors that the job asked for; `None` if unknown.
    pub processors: Option<u64>,
    /// Licences that the job asked for: name and count.
    pub licenses: Vec<(Arc<str>, u64)>,
    /// Whether the job must not start again if its run is ended early.
    pub no_requeue: bool,
    /// The time, in seconds, that orders the job among jobs of the same priority; `None`: the time it became eligible.
    pub queued: Option<f64>,
}

impl Attributes {
    /// Returns the attributes of a job that is requeued now: it goes behind all jobs that were queued before.
    #[must_use]
    pub fn queued_again(&self, now: f64) -> Self {
        Attributes { queued: self.queued.map(|_| now), ..self.clone() }
    }
}
