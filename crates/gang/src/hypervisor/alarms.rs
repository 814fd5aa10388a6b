//! The next event of each core.

use super::time::{NEVER, Nanos};

/// A tournament tree over the cores. It gives the first event of all cores in one step. Changing a core's event takes
/// one step per level and leaves no outdated entries.
pub struct Alarms {
    leaves: usize,
    /// The root is 1; the children of `i` are `2i` and `2i + 1`. Each key is a time, with the core in the last byte.
    keys: Vec<u64>,
}

impl Alarms {
    /// Returns the alarms of `cores` cores, at most 256.
    pub fn new(cores: usize) -> Self {
        let leaves = cores.next_power_of_two();
        Alarms { leaves, keys: vec![NEVER << 8; 2 * leaves] }
    }

    /// Sets the time of a core's next event.
    pub fn set(&mut self, core: usize, at: Nanos) {
        let mut place = self.leaves + core;
        let mut key = at << 8 | core as u64;
        while self.keys[place] != key {
            self.keys[place] = key;
            if place == 1 {
                return;
            }
            key = key.min(self.keys[place ^ 1]);
            place /= 2;
        }
    }

    /// The time of the first event, and its core.
    pub fn first(&self) -> (Nanos, usize) {
        let key = self.keys[1];
        (key >> 8, (key & 0xff) as usize)
    }
}
