//! Which nodes are promised to waiting jobs, and when.

use topolane_fabric::NodeSet;

/// Nodes without a promise from one time to another.
#[derive(Debug, Clone)]
struct Slot {
    begin: f64,
    end: f64,
    free: NodeSet,
}

/// The slots of time from now to the end of the window, in order and without gaps.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    slots: Vec<Slot>,
}

impl Plan {
    /// No promises on these nodes from `begin` to `end`.
    pub fn new(begin: f64, end: f64, free: NodeSet) -> Self {
        Plan { slots: vec![Slot { begin, end, free }] }
    }

    /// Takes away from `nodes` those that are promised at any time from `start` to `end`. Answers when other nodes are free
    /// for the first time after `start`; `None` if that never changes.
    pub fn keep_free(&self, nodes: &mut NodeSet, start: f64, end: f64) -> Option<f64> {
        let mut later = None;
        let wanted = nodes.clone();
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.end <= start {
                continue;
            }
            if let Some(next) = self.slots.get(index + 1).filter(|_| later.is_none()) {
                let gains = wanted.iter().any(|node| {
                    next.free.contains(node) && !(nodes.contains(node) && slot.free.contains(node))
                });
                if gains {
                    later = Some(slot.end);
                }
            }
            if slot.begin > end {
                // Slots that begin after the end are not looked at one by one.
                let next = self.slots.get(index + 1).filter(|_| index + 2 < self.slots.len());
                return later.or(next.map(|next| next.end));
            }
            nodes.intersect(&slot.free);
        }
        later
    }

    /// Whether all these nodes are without a promise from `start` to `end`.
    pub fn is_free(&self, nodes: &NodeSet, start: f64, end: f64) -> bool {
        let meets = |slot: &&Slot| slot.end > start && slot.begin < end;
        self.slots
            .iter()
            .filter(meets)
            .all(|slot| nodes.iter().all(|node| slot.free.contains(node)))
    }

    /// Promises these nodes from `start` to `end`.
    pub fn promise(&mut self, nodes: &NodeSet, start: f64, end: f64) {
        self.cut(start);
        self.cut(end);
        for slot in self.slots.iter_mut().filter(|slot| slot.begin >= start && slot.end <= end) {
            slot.free.subtract(nodes);
        }
    }

    /// Lets a slot begin at a time inside the window.
    fn cut(&mut self, time: f64) {
        let inside = |slot: &Slot| slot.begin < time && time < slot.end;
        if let Some(index) = self.slots.iter().position(inside) {
            let rest = Slot { begin: time, ..self.slots[index].clone() };
            self.slots[index].end = time;
            self.slots.insert(index + 1, rest);
        }
    }
}
