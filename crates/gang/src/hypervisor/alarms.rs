//! When each core has something to do.

use super::time::{NEVER, Nanos};

/// A tournament over the cores: whose event is first, in a step; a core's event moves in as many steps as the
/// tournament has levels, and nothing old is left behind.
pub struct Alarms {
    leaves: usize,
    /// The root is 1, the children of `i` are `2i` and `2i + 1`; a time and, in the last byte, a core.
    keys: Vec<u64>,
}

impl Alarms {
    /// The alarms of `cores` cores, at most 256.
    pub fn new(cores: usize) -> Self {
        let leaves = cores.next_power_of_two();
        Alarms { leaves, keys: vec![NEVER << 8; 2 * leaves] }
    }

    /// The core's next event is then.
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

    /// The first event and its core.
    pub fn first(&self) -> (Nanos, usize) {
        let key = self.keys[1];
        (key >> 8, (key & 0xff) as usize)
    }
}
