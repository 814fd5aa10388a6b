//! Caches which nodes have a slot for recently requested shares. Changes update the cache, so nodes need not be counted
//! again.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use topolane_fabric::{NodeIndex, NodeSet};

use super::{BlockSlots, Occupancy};
use crate::amounts::Amounts;

/// The most shares that are cached.
const MOST_TABLES: usize = 32;

/// The cached tables. A claim or release only notes its nodes; a table checks them when it is next used, because most
/// changes are undone or repeated before that.
#[derive(Debug, Default)]
pub(super) struct PartSlots(Mutex<SlotTables>);

#[derive(Debug, Default)]
struct SlotTables {
    tables: Vec<SlotTable>,
    /// Nodes that changed, oldest first.
    changed: Vec<NodeIndex>,
    /// The number of times that this list was cleared.
    begun: u64,
    asked: u64,
}

/// The nodes that have a slot for one share.
#[derive(Debug, Clone)]
struct SlotTable {
    amounts: Amounts,
    slots: Arc<SharedSlots>,
    total: u32,
    /// The number of entries of `changed` already applied; `None` if the table must be computed again.
    seen: Option<usize>,
    /// When the table was last used.
    asked: u64,
}

/// The nodes that have a slot, counted by group and by block.
#[derive(Debug, Clone)]
pub(crate) struct SharedSlots {
    pub nodes: NodeSet,
    /// By level: the slots of every group. Level 0 is empty.
    pub counts: Vec<Vec<u32>>,
    pub by_block: BlockSlots,
}

/// A position in the list of changes to which [`Occupancy::forget_changes`] can return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    begun: u64,
    length: usize,
}

impl PartSlots {
    fn kept(&self) -> MutexGuard<'_, SlotTables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_mut(&mut self) -> &mut SlotTables {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for PartSlots {
    fn clone(&self) -> Self {
        let kept = self.kept();
        PartSlots(Mutex::new(SlotTables {
            tables: kept.tables.clone(),
            changed: kept.changed.clone(),
            ..*kept
        }))
    }
}

impl Occupancy {
    /// Records that the slots of these nodes may have changed.
    #[inline]
    pub(super) fn note_changes(&mut self, nodes: Range<NodeIndex>) {
        let most = self.held.len().max(1024);
        let kept = self.part_slots.kept_mut();
        if kept.tables.is_empty() {
            return;
        }
        if kept.changed.len() + nodes.len() > most {
            kept.changed.clear();
            kept.begun += 1;
            kept.tables.iter_mut().for_each(|table| table.seen = None);
        }
        kept.changed.extend(nodes);
    }

    /// Returns the current position in the list of changes.
    pub(crate) fn mark_changes(&mut self) -> Mark {
        let kept = self.part_slots.kept_mut();
        Mark { begun: kept.begun, length: kept.changed.len() }
    }

    /// Drops the changes after a mark, which have been undone, unless a table has already applied them.
    pub(crate) fn forget_changes(&mut self, mark: Mark) {
        let kept = self.part_slots.kept_mut();
        let is_unseen = |table: &SlotTable| table.seen.is_none_or(|seen| seen <= mark.length);
        if kept.begun == mark.begun && kept.tables.iter().all(is_unseen) {
            kept.changed.truncate(mark.length);
        }
    }

    /// The number of nodes that have a slot for a share.
    pub(crate) fn part_total(&self, amounts: &Amounts) -> u32 {
        self.with_table(amounts, |table| table.total)
    }

    /// The nodes that have a slot for a share.
    pub(crate) fn part_nodes(&self, amounts: &Amounts) -> NodeSet {
        self.with_table(amounts, |table| table.slots.nodes.clone())
    }

    /// The nodes that have a slot for a share, counted by group and by block.
    pub(crate) fn part_counts(&self, amounts: &Amounts) -> Arc<SharedSlots> {
        self.with_table(amounts, |table| Arc::clone(&table.slots))
    }

    fn with_table<T>(&self, amounts: &Amounts, answer: impl FnOnce(&SlotTable) -> T) -> T {
        let mut kept = self.part_slots.kept();
        kept.asked += 1;
        let asked = kept.asked;
        let SlotTables { tables, changed, .. } = &mut *kept;
        let known = tables.iter().position(|table| table.amounts == *amounts);
        let index = known.unwrap_or_else(|| {
            let oldest = (0..tables.len()).min_by_key(|&index| tables[index].asked);
            if let Some(oldest) = oldest.filter(|_| tables.len() >= MOST_TABLES) {
                tables.swap_remove(oldest);
            }
            tables.push(self.table(amounts));
            tables.len() - 1
        });
        let table = &mut tables[index];
        match table.seen {
            Some(seen) => changed[seen..].iter().for_each(|&node| self.follow(table, node)),
            None => *table = self.table(amounts),
        }
        table.seen = Some(changed.len());
        table.asked = asked;
        answer(table)
    }

    /// Computes the table of a share from all nodes.
    fn table(&self, amounts: &Amounts) -> SlotTable {
        let levels = 0..=self.fabric.depth();
        let groups = |level| if level > 0 { self.fabric.groups(level) as usize } else { 0 };
        let mut table = SlotTable {
            amounts: amounts.clone(),
            slots: Arc::new(SharedSlots {
                nodes: NodeSet::empty(self.fabric.nodes()),
                counts: levels.map(|level| vec![0; groups(level)]).collect(),
                by_block: BlockSlots::none(&self.fabric),
            }),
            total: 0,
            seen: None,
            asked: 0,
        };
        for node in self.in_service.iter() {
            self.follow(&mut table, node);
        }
        table
    }

    /// Updates a table for a node that may have changed.
    #[inline]
    fn follow(&self, table: &mut SlotTable, node: NodeIndex) {
        let fits = self.fits_part(node, &table.amounts);
        if fits == table.slots.nodes.contains(node) {
            return;
        }
        // Copies only if a caller still holds the old slots.
        let slots = Arc::make_mut(&mut table.slots);
        let change = |count: &mut u32| if fits { *count += 1 } else { *count -= 1 };
        if fits {
            slots.nodes.insert(node);
        } else {
            slots.nodes.remove(node);
        }
        change(&mut table.total);
        slots.by_block.change(&self.fabric, node..node + 1, fits);
        for level in 1..=self.fabric.depth() {
            change(&mut slots.counts[level][self.fabric.group(level, node) as usize]);
        }
    }
}
