//! Kueue's assignment of pods to groups of nodes, rebuilt: first the groups that hold the whole request, then level by
//! level down to nodes.

use topolane_fabric::NodeIndex;

use super::levels::KueueLevels;

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) slots: u32,
    /// Slots per slice, at most `slots`, and the level of which one group must hold each slice.
    pub(super) slice: (u32, usize),
    /// The level of which one group is to hold everything; at or above the level of the slices.
    pub(super) level: usize,
    /// Whether the placement may not move to a higher level.
    pub(super) stays: bool,
    /// Whether the placement may not use a second group.
    pub(super) required: bool,
}

impl Wanted {
    /// The number of slices. The last may be smaller, but needs a free whole slice all the same.
    pub(super) fn slices(&self) -> u32 {
        self.slots.div_ceil(self.slice.0)
    }
}

/// A group, its free slots and the whole slices that fit there.
#[derive(Debug, Clone, Copy)]
struct Offer {
    slices: u32,
    slots: u32,
    group: u32,
}

pub(super) struct KueueRule<'a> {
    levels: KueueLevels<'a>,
    wanted: Wanted,
    /// Whether groups with least free capacity go first instead of those with most.
    least_free: bool,
    /// For each level from that of the slices up, the slices that fit in each group. Empty if a slice is one slot.
    slices: Vec<Vec<u32>>,
}

impl<'a> KueueRule<'a> {
    pub(super) fn new(levels: KueueLevels<'a>, wanted: Wanted, least_free: bool) -> Self {
        let mut slices: Vec<Vec<u32>> = Vec::new();
        let (size, at) = wanted.slice;
        if size > 1 {
            slices
                .push((0..levels.groups(at)).map(|group| levels.slots(at, group) / size).collect());
            for level in at..levels.top().max(wanted.level) {
                let mut above = vec![0u32; levels.groups(level + 1) as usize];
                for (group, fit) in (0..).zip(&slices[level - at]) {
                    above[levels.above(level, group) as usize] += fit;
                }
                slices.push(above);
            }
        }
        KueueRule { levels, wanted, least_free, slices }
    }

    /// The groups that take the request, the slices of each, and the level of the groups.
    ///
    /// # Errors
    /// The most slots that the request could get.
    pub(super) fn fit(&self) -> Result<(usize, Vec<(u32, u32)>), u32> {
        let Wanted { level, stays, required, slice: (size, _), .. } = self.wanted;
        let wanted = self.wanted.slices();
        for level in level..=if stays { level } else { self.levels.top().max(level) } {
            let groups = 0..self.levels.groups(level);
            let holding = groups.map(|group| self.offer(level, group));
            // The tightest group that holds everything is the same in both orders.
            let tightest = holding
                .filter(|offer| offer.slices >= wanted)
                .min_by_key(|offer| (offer.slices, offer.slots, offer.group));
            if let Some(offer) = tightest {
                return Ok((level, vec![(offer.group, wanted)]));
            }
            if required {
                let most =
                    (0..self.levels.groups(level)).map(|group| self.offer(level, group).slices);
                return Err(most.max().unwrap_or(0).saturating_mul(size));
            }
        }
        let level = if stays { level } else { self.levels.top().max(level) };
        let chosen = self.spread(level, 0..self.levels.groups(level), wanted, |offer| offer.slices);
        let found: u32 = chosen.iter().map(|&(_, slices)| slices).sum();
        if found < wanted { Err(found * size) } else { Ok((level, chosen)) }
    }

    /// The node of each slot, ascending.
    ///
    /// # Errors
    /// The most slots that the request could get.
    pub(super) fn nodes(&self) -> Result<Vec<NodeIndex>, u32> {
        let (mut level, mut chosen) = self.fit()?;
        let (size, slice_level) = self.wanted.slice;
        // Above the level of slices, all groups below the chosen ones form one pool: the slices given to a chosen group
        // are not binding.
        while level > slice_level {
            let mut below = Vec::new();
            for &(group, _) in &chosen {
                self.levels.below(level, group, &mut below);
            }
            level -= 1;
            chosen = self.spread(level, below, self.wanted.slices(), |offer| offer.slices);
        }
        for (_, given) in &mut chosen {
            *given *= size;
        }
        if let Some((_, last)) = chosen.last_mut() {
            *last -= (size - self.wanted.slots % size) % size;
        }
        // Below that level, each group keeps what it was given.
        while level > 0 {
            let mut next = Vec::with_capacity(self.wanted.slots as usize);
            for &(group, given) in &chosen {
                let mut below = Vec::new();
                self.levels.below(level, group, &mut below);
                next.extend(self.spread(level - 1, below, given, |offer| offer.slots));
            }
            level -= 1;
            chosen = next;
        }
        chosen.sort_unstable();
        let slots = chosen.iter().map(|&(node, given)| std::iter::repeat_n(node, given as usize));
        Ok(slots.flatten().collect())
    }

    /// Gives groups, in order, all slots that they have, in steps of `unit`, until `left` are given. Unless groups with
    /// least free capacity go first, the last step takes the tightest group that holds all the rest.
    fn spread(
        &self,
        level: usize,
        groups: impl IntoIterator<Item = u32>,
        mut left: u32,
        unit: fn(&Offer) -> u32,
    ) -> Vec<(u32, u32)> {
        let offers = groups.into_iter().map(|group| self.offer(level, group));
        let mut offers: Vec<Offer> = offers.filter(|offer| offer.slots > 0).collect();
        let sign = if self.least_free { 1 } else { -1 };
        offers.sort_unstable_by_key(|o| (sign * i64::from(o.slices), o.slots, o.group));
        let mut chosen = Vec::new();
        for (index, offer) in offers.iter().enumerate() {
            if left == 0 {
                break;
            }
            let mut offer = offer;
            if !self.least_free && unit(offer) >= left {
                let holding = offers[index..].iter().filter(|offer| unit(offer) >= left);
                offer = holding.min_by_key(|offer| unit(offer)).unwrap_or(offer);
            }
            let given = unit(offer).min(left);
            if given > 0 {
                chosen.push((offer.group, given));
            }
            left -= given;
        }
        chosen
    }

    fn offer(&self, level: usize, group: u32) -> Offer {
        let slots = self.levels.slots(level, group);
        let slices = match level.checked_sub(self.wanted.slice.1) {
            None => 0,
            Some(up) => self.slices.get(up).map_or(slots, |fit| fit[group as usize]),
        };
        Offer { slices, slots, group }
    }
}
