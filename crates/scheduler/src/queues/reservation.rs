//! What conservative backfilling promises a job.

use std::sync::Arc;

use topolane_placement::{Placement, Request};

/// A reservation lasts at least this long, seconds, so that one for no time at all is kept too.
pub(crate) const SHORTEST: f64 = 1.0;

/// A reservation.
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
