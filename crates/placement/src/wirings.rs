//! The kinds of wiring on which a policy works.

use std::fmt;

use topolane_fabric::Wiring;

/// A set of kinds of wiring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wirings {
    tree: bool,
    dragonfly: bool,
    torus: bool,
    hyperx: bool,
}

impl Wirings {
    /// All kinds: for a policy that only reads the hierarchy of groups.
    pub const ANY: Wirings = Wirings { tree: true, dragonfly: true, torus: true, hyperx: true };
    /// Trees only: for a policy that counts hops or uplinks as in a tree, or isolates by the groups that jobs cross.
    pub const TREE: Wirings = Wirings { tree: true, dragonfly: false, torus: false, hyperx: false };
    /// Dragonflies only.
    pub const DRAGONFLY: Wirings =
        Wirings { tree: false, dragonfly: true, torus: false, hyperx: false };

    /// Whether a wiring is of one of these kinds.
    #[inline]
    pub fn has(self, wiring: &Wiring) -> bool {
        match wiring {
            Wiring::Tree => self.tree,
            Wiring::Dragonfly(_) => self.dragonfly,
            Wiring::Torus(_) => self.torus,
            Wiring::HyperX(_) => self.hyperx,
        }
    }
}

impl fmt::Display for Wirings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.tree, "a tree"),
            (self.dragonfly, "a dragonfly"),
            (self.torus, "a torus"),
            (self.hyperx, "a HyperX"),
        ];
        let own: Vec<&str> = kinds.into_iter().filter(|kind| kind.0).map(|kind| kind.1).collect();
        f.write_str(&own.join(" or "))
    }
}
