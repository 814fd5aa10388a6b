//! The share of full bandwidth that jobs have over time.

use std::collections::HashMap;

/// Of jobs that have less than all of it at some time.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    running: HashMap<u64, Share>,
}

#[derive(Debug)]
struct Share {
    begin: f64,
    since: f64,
    phi: f64,
    /// Integral of phi until `since`, seconds.
    had: f64,
}

impl Shares {
    /// From now on the job has this share.
    pub fn set(&mut self, id: u64, phi: f64, now: f64) {
        let share =
            self.running.entry(id).or_insert(Share { begin: now, since: now, phi, had: 0.0 });
        share.had += share.phi * (now - share.since);
        share.since = now;
        share.phi = phi;
    }

    /// The mean over the time of a job that ends; `None` for one of which nothing was said, or of no time.
    pub fn end(&mut self, id: u64, now: f64) -> Option<f64> {
        let share = self.running.remove(&id)?;
        let had = share.had + share.phi * (now - share.since);
        (now > share.begin).then(|| had / (now - share.begin))
    }
}
