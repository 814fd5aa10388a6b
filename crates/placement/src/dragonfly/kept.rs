//! Conflicts between switches of groups, kept while no job takes or leaves a link of the group.

use std::sync::{Arc, OnceLock};

use topolane_fabric::Dragonfly;

use super::clique::Conflicts;

/// The conflicts in each group of a dragonfly, found when they are first asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptConflicts(Vec<OnceLock<Option<Arc<Conflicts>>>>, Arc<[u16]>);

impl KeptConflicts {
    pub fn new(dragonfly: &Dragonfly) -> Self {
        let groups = (0..dragonfly.groups()).map(|_| OnceLock::new()).collect();
        KeptConflicts(groups, dragonfly.groups_of_words().map(|group| group as u16).collect())
    }

    /// The conflicts in a group, given the words of all links in use; `None` if there are none.
    pub fn get(
        &self,
        dragonfly: &Dragonfly,
        group: u32,
        used: &dyn Fn(u32) -> u64,
    ) -> Option<&Conflicts> {
        let find =
            || dragonfly.open_in(group, used).and_then(|open| Conflicts::of(&open)).map(Arc::new);
        self.0.get(group as usize)?.get_or_init(find).as_deref()
    }

    /// Records that links of a word are used or free now.
    #[inline]
    pub fn forget(&mut self, word: u32) {
        if let Some(&group) = self.1.get(word as usize) {
            self.0[group as usize].take();
        }
    }
}
