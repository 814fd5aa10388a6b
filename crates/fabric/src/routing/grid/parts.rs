//! Splits that are a part of one channel.

use crate::error::InputError;
use crate::link::Channel;
use crate::routing::SplitTable;

/// The most splits of a machine.
const MOST_SPLITS: u64 = 1 << 23;

/// For each of some numbers n and each channel between switches: the split that is one n-th of a message on this channel.
#[derive(Debug)]
pub(super) struct ChannelParts {
    first: Channel,
    channels: u32,
    one_in: Vec<u32>,
    parts: Vec<(Channel, f64)>,
}

impl ChannelParts {
    /// Returns the splits of the channels from `first` to before `end`.
    ///
    /// # Errors
    /// There are too many.
    pub fn new(first: Channel, end: Channel, one_in: Vec<u32>) -> Result<Self, InputError> {
        let all = u64::from(end - first) * one_in.len() as u64;
        if all > MOST_SPLITS {
            return Err(InputError::whole(format!(
                "{} links between switches are too many for a routing over all orders: take dimension-order",
                end - first
            )));
        }
        let of = |n: &u32| {
            let part = 1.0 / f64::from(*n);
            (first..end).map(move |channel| (channel, part))
        };
        let parts = one_in.iter().flat_map(of).collect();
        Ok(ChannelParts { first, channels: end - first, one_in, parts })
    }

    /// The split that is one n-th of a message on a channel between switches, as routes name it; the channel itself for 1.
    pub fn entry(&self, channel: Channel, n: u32) -> Channel {
        let place = self.one_in.iter().position(|&other| other == n);
        debug_assert!(n == 1 || place.is_some(), "one {n}-th is not among the parts");
        let split = |place: usize| place as u32 * self.channels + channel - self.first;
        place.map_or(channel, |place| self.first + self.channels + split(place))
    }
}

impl SplitTable for ChannelParts {
    fn count(&self) -> u32 {
        self.parts.len() as u32
    }

    fn parts(&self, split: u32) -> &[(Channel, f64)] {
        let split = split as usize;
        self.parts.get(split..=split).unwrap_or_default()
    }
}

/// The orders of some dimensions over those that pass a link after some of the others.
///
/// Of k dimensions, a message passes s before the link's and k - 1 - s after it, so s! (k - 1 - s)! of k! orders pass it.
pub(super) fn one_in_orders(dimensions: u32, before: u32) -> u32 {
    let choose =
        |all: u32, some: u32| (0..some).fold(1, |count, step| count * (all - step) / (step + 1));
    dimensions * choose(dimensions - 1, before)
}
