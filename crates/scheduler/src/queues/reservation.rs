//! Reservations of conservative backfilling.

use std::sync::Arc;

use topolane_placement::{Placement, Request};

/// The shortest reservation, in seconds, so that one of zero length is also tracked.
pub(crate) const SHORTEST: f64 = 1.0;

/// The reservation of a waiting job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Promise {
    pub start: f64,
    pub end: f64,
    pub whole_nodes: i64,
    pub placement: Option<Arc<Placement>>,
}

impl Promise {
    pub fn new(request: &Request, start: f64, placement: Option<Arc<Placement>>) -> Self {
        let end = start + lasts(request);
        Promise { start, end, whole_nodes: whole_nodes(request), placement }
    }
}

pub(crate) fn lasts(request: &Request) -> f64 {
    request.walltime.max(SHORTEST)
}

pub(crate) fn whole_nodes(request: &Request) -> i64 {
    if request.share.is_whole() { i64::from(request.nodes) } else { 0 }
}
