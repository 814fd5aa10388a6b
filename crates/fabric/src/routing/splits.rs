//! Splits: sets of channels over which a routing divides traffic.

use std::fmt;
use std::sync::Arc;

use crate::link::Channel;

/// The splits of a routing, numbered from 0.
pub trait SplitTable: fmt::Debug + Send + Sync {
    /// The number of splits.
    fn count(&self) -> u32;

    /// The channels of a split, ascending, each with the part of the bytes that it carries, above 0. Parts need not add
    /// up to 1: a byte may pass several channels of a split, or none.
    fn parts(&self, split: u32) -> &[(Channel, f64)];
}

/// The splits of a routing as its routes name them: numbered after its channels. The default has none.
#[derive(Debug, Clone)]
pub struct Splits {
    first: Channel,
    table: Option<Arc<dyn SplitTable>>,
}

impl Default for Splits {
    fn default() -> Self {
        Splits { first: Channel::MAX, table: None }
    }
}

impl PartialEq for Splits {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.table, &other.table) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same && self.first == other.first
    }
}

impl Splits {
    /// Returns the splits of a routing with this number of channels.
    pub fn new(channels: u32, table: Arc<dyn SplitTable>) -> Self {
        Splits { first: channels, table: Some(table) }
    }

    /// The number of the first split in routes; larger than any channel if there is none.
    #[inline]
    pub fn first(&self) -> Channel {
        self.first
    }

    /// The number of splits.
    pub fn count(&self) -> u32 {
        self.table.as_ref().map_or(0, |table| table.count())
    }

    /// Whether an entry of a route is a split.
    #[inline]
    pub fn has(&self, entry: Channel) -> bool {
        entry >= self.first
    }

    /// The channels of a split, named as in routes, with their parts; empty for a channel.
    pub fn parts(&self, entry: Channel) -> &[(Channel, f64)] {
        match (&self.table, entry.checked_sub(self.first)) {
            (Some(table), Some(split)) => table.parts(split),
            _ => &[],
        }
    }

    /// Calls `each` with the channels of an entry of a route and the part of the bytes on each: 1 for a channel.
    #[inline]
    pub fn each(&self, entry: Channel, mut each: impl FnMut(Channel, f64)) {
        if self.has(entry) {
            self.parts(entry).iter().for_each(|&(channel, part)| each(channel, part));
        } else {
            each(entry, 1.0);
        }
    }
}
