//! Finds out whether the domains of a machine are a level of its tree.

use super::Fabric;
use super::domains::Domains;
use crate::ids::NodeIndex;

impl Fabric {
    /// The lowest level whose groups contain every domain whole, if domains nest in the tree: each group below that
    /// level is inside one domain or outside all. `None` if domains do not nest, or if there are none.
    pub fn level_above_domains(&self) -> Option<usize> {
        self.domains.level_above
    }

    /// The level whose groups are exactly the domains, if there is one.
    pub fn level_of_domains(&self) -> Option<usize> {
        self.domains.level_of
    }

    /// Computes both levels.
    pub(super) fn nest_domains(&mut self) {
        self.domains.level_above = self.nesting(&self.domains);
        self.domains.level_of = self.domains.level_above.filter(|&level| self.are_domains(level));
        let span_leaves = self.domains.sets().any(|nodes| !self.is_in_one_group(1, nodes));
        self.domains.span_leaves = span_leaves;
    }

    fn are_domains(&self, level: usize) -> bool {
        let is_whole = |nodes: &[NodeIndex]| {
            nodes.len() == self.node_range(level, self.group(level, nodes[0])).len()
        };
        self.groups(level) == self.domains() && self.domains.sets().all(is_whole)
    }

    fn nesting(&self, domains: &Domains) -> Option<usize> {
        if domains.is_empty() {
            return None;
        }
        let above = (1..=self.depth())
            .find(|&level| domains.sets().all(|nodes| self.is_in_one_group(level, nodes)))?;
        let is_in_one_domain = |group| {
            let mut nodes = self.node_range(above - 1, group);
            let first = nodes.next().and_then(|node| self.domain(node));
            nodes.all(|node| self.domain(node) == first)
        };
        (0..self.groups(above - 1)).all(is_in_one_domain).then_some(above)
    }

    fn is_in_one_group(&self, level: usize, nodes: &[NodeIndex]) -> bool {
        nodes.iter().all(|&node| self.group(level, node) == self.group(level, nodes[0]))
    }
}
