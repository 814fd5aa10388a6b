//! The kinds of wiring on which a policy works.

use std::fmt;

use topolane_fabric::Wiring;

/// Of each kind, by its number.
const NAMES: [&str; 4] = ["a tree", "a dragonfly", "a torus", "a HyperX"];

/// A set of kinds of wiring: a bit of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wirings(u8);

impl Wirings {
    /// All kinds: for a policy that only reads the hierarchy of groups.
    pub const ANY: Wirings = Wirings((1 << NAMES.len()) - 1);
    /// Trees only: for a policy that counts hops or uplinks as in a tree, or isolates by the groups that jobs cross.
    pub const TREE: Wirings = Wirings(1);
    /// Dragonflies only.
    pub const DRAGONFLY: Wirings = Wirings(1 << 1);
    /// Trees and dragonflies: for a policy that gives cables to jobs.
    pub const TREE_OR_DRAGONFLY: Wirings = Wirings(1 | 1 << 1);

    /// Whether a wiring is of one of these kinds.
    #[inline]
    pub fn has(self, wiring: &Wiring) -> bool {
        self.has_kind(match wiring {
            Wiring::Tree => 0,
            Wiring::Dragonfly(_) => 1,
            Wiring::Torus(_) => 2,
            Wiring::HyperX(_) => 3,
        })
    }

    #[inline]
    fn has_kind(self, kind: usize) -> bool {
        self.0 >> kind & 1 == 1
    }
}

impl fmt::Display for Wirings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = NAMES.iter().enumerate().filter(|&(kind, _)| self.has_kind(kind));
        f.write_str(&own.map(|(_, &name)| name).collect::<Vec<_>>().join(" or "))
    }
}
