//! Dedicated links: nodes and uplinks that only one job uses.
//!
//! docs/explanation/dedicated-links.md states the condition that they must meet, (1) to (5), proves it, and describes
//! the search. The code is in the same order:
//!
//! - `condition`: what (1) to (5) ask for, and [`check`], which judges nodes and links from any source;
//! - `search`: the strategies of the policy `dedicated`;
//! - `equal_parts`: the search of the policies `jigsaw` and `laas`;
//! - `lending`: idle links for jobs that have less than full bandwidth;
//! - `limits`: the parts of a machine where links cannot be dedicated;
//! - `uplink_slots`: which uplinks are free.

mod condition;
pub(crate) mod equal_parts;
mod lending;
mod limits;
pub(crate) mod search;
pub(crate) mod uplink_slots;

pub use condition::check;
pub use condition::violation::Violation;
pub use lending::{Lent, lend};
pub(crate) use limits::limit_for;
pub use limits::{Limit, LimitKind, limits};
pub use search::leaf::Weights;
