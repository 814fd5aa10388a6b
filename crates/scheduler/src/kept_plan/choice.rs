//! What a policy chose from.

use std::ops::Range;

use topolane_fabric::{Fabric, GroupIndex};
use topolane_placement::{GroupCounts, Policy, Request};

use super::held::Held;
use crate::timeline::CROSSED;

/// Of a leaf in [`Choice::leaves`]: a job crosses it. The bits below count its free nodes.
const IS_CROSSED: u8 = 1 << 7;

/// What a policy chose from for one span of time.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Of every leaf the free nodes, and [`IS_CROSSED`].
    leaves: Box<[u8]>,
    /// The group that it chose; `None` if the policy does not tell.
    home: Option<(usize, GroupIndex)>,
    /// The leaves of that group.
    inside: Range<u32>,
}

impl Choice {
    /// What the policy chooses from where these bits of all leaves are held.
    pub fn of(
        request: &Request,
        policy: &dyn Policy,
        held: &Held,
        bits: &[u64],
        when: (f64, f64),
    ) -> Self {
        let counts = (0..).zip(bits).map(|(leaf, &bits)| count(held, leaf, bits));
        let leaves: Box<[u8]> = counts.collect();
        let home = policy.home(request, &Counts { held, leaves: &leaves, when });
        let inside = home.map_or(0..0, |(level, group)| held.leaves_of(level, group));
        Choice { leaves, home, inside }
    }

    /// Whether a leaf matters only by its counts.
    pub fn is_outside(&self, leaf: u32) -> bool {
        self.home.is_some() && !self.inside.contains(&leaf)
    }

    /// Counts some leaves outside of the group anew. Whether the policy now goes to another group.
    pub fn goes_elsewhere(
        &mut self,
        changed: &[u32],
        request: &Request,
        policy: &dyn Policy,
        held: &Held,
        when: (f64, f64),
    ) -> bool {
        let mut is_new = false;
        for &leaf in changed {
            let count = count(held, leaf, held.on_leaf(leaf, when));
            is_new |= std::mem::replace(&mut self.leaves[leaf as usize], count) != count;
        }
        let counts = Counts { held, leaves: &self.leaves, when };
        is_new && policy.home(request, &counts) != self.home
    }
}

fn count(held: &Held, leaf: u32, bits: u64) -> u8 {
    let free = held.free_nodes(leaf, bits) as u8;
    if bits & CROSSED == 0 { free } else { free | IS_CROSSED }
}

/// The counts of all groups for one span of time.
struct Counts<'a> {
    held: &'a Held,
    leaves: &'a [u8],
    when: (f64, f64),
}

impl GroupCounts for Counts<'_> {
    fn fabric(&self) -> &Fabric {
        &self.held.fabric
    }

    fn free(&self, level: usize, group: GroupIndex) -> u32 {
        let leaves = self.held.leaves_of(level, group);
        let leaves = &self.leaves[leaves.start as usize..leaves.end as usize];
        leaves.iter().map(|&leaf| u32::from(leaf & !IS_CROSSED)).sum()
    }

    fn is_crossed(&self, level: usize, group: GroupIndex) -> bool {
        if level == 1 {
            return self.leaves[group as usize] & IS_CROSSED != 0;
        }
        self.held.is_crossed(level, group, self.when)
    }
}
