//! Numbers the kinds of requests. Requests of one kind and size differ only in id and times.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_placement::Request;

/// The most kinds that are distinguished.
const MOST: usize = 512;

/// A number for every kind of request seen so far.
#[derive(Debug, Default)]
pub(crate) struct RequestKinds {
    /// One request of each kind.
    seen: Vec<Request>,
    /// A number for every kind and size seen so far.
    classes: HashMap<(u32, u32), u32>,
}

/// The class of a request without a kind.
pub(crate) const NO_CLASS: u32 = u32::MAX;

impl RequestKinds {
    /// Returns the kind of a request. `None` if it depends on more than its kind: nodes that it names, or slots that
    /// another system counts. Also `None` for a new kind if there are too many.
    pub(crate) fn of(&mut self, request: &Request) -> Option<u32> {
        let is_own = request.stacked
            || request.slots.is_some()
            || request.recorded.is_some()
            || request.beyond > 0
            || !request.members.is_empty();
        if is_own {
            return None;
        }
        let known = self.seen.iter().position(|seen| is_alike(seen, request));
        let kind = known.or_else(|| {
            (self.seen.len() < MOST).then(|| {
                self.seen.push(Request { traffic: None, ..request.clone() });
                self.seen.len() - 1
            })
        });
        kind.map(|kind| kind as u32)
    }

    /// Returns a number for a kind and size; [`NO_CLASS`] without a kind.
    pub(crate) fn class_of(&mut self, kind: Option<u32>, nodes: u32) -> u32 {
        let next = self.classes.len() as u32;
        kind.map_or(NO_CLASS, |kind| *self.classes.entry((kind, nodes)).or_insert(next))
    }
}

fn is_alike(one: &Request, other: &Request) -> bool {
    let eligible = match (&one.eligible, &other.eligible) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    };
    eligible && one.share == other.share && one.is_like(other)
}
