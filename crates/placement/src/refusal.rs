//! The reasons why a policy does not place a request.

use std::fmt;

use crate::amounts::Lack;
use crate::dedicated::LimitKind;
use crate::wirings::Wirings;

/// A typed reason for not placing a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There are not enough free slots at this moment.
    NotNow {
        /// Slots that the request wants.
        wanted: u32,
        /// The most slots that it could get now.
        free: u32,
    },
    /// The request would not fit even on the empty machine.
    Never {
        /// Slots that the request wants.
        wanted: u32,
        /// The most slots that it could ever get.
        most: u32,
    },
    /// No node has enough of a resource for one slot, even on an idle machine.
    Lacks(Lack),
    /// There are enough free slots, but with them two jobs would share a link.
    WouldShareLinks {
        /// Slots that the request wants.
        wanted: u32,
        /// Free slots.
        free: u32,
    },
    /// There are enough slots on the empty machine, but the job cannot have links of its own even there.
    CannotIsolate {
        /// Slots that the request wants.
        wanted: u32,
        /// Slots of the empty machine.
        most: u32,
        /// The part of the machine that prevents it.
        why: LimitKind,
    },
    /// The policy does not work on a machine of this kind.
    WrongWiring {
        /// What the policy needs.
        needs: Wirings,
        /// The name of the kind of wiring of the machine.
        has: &'static str,
    },
}

impl Refusal {
    /// Returns a short constant name: `not-now`, `never`, `would-share-links`, `cannot-isolate`.
    pub fn name(&self) -> &'static str {
        match self {
            Refusal::NotNow { .. } => "not-now",
            Refusal::Never { .. } | Refusal::Lacks { .. } | Refusal::WrongWiring { .. } => "never",
            Refusal::WouldShareLinks { .. } => "would-share-links",
            Refusal::CannotIsolate { .. } => "cannot-isolate",
        }
    }
}

impl From<Lack> for Refusal {
    fn from(lack: Lack) -> Self {
        Refusal::Lacks(lack)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotNow { wanted, free } => {
                write!(f, "does not fit now: {wanted} wanted, {free} to be had")
            }
            Refusal::Never { wanted, most } => {
                write!(f, "never fits: {wanted} wanted, {most} in all")
            }
            Refusal::Lacks(lack) => lack.fmt(f),
            Refusal::WrongWiring { needs, has } => {
                write!(f, "the policy needs {needs}, but the machine is a {has}")
            }
            Refusal::CannotIsolate { wanted, most, why } => {
                write!(f, "can never be isolated: {wanted} wanted, {most} in all, but {why}")
            }
            Refusal::WouldShareLinks { wanted, free } => {
                write!(
                    f,
                    "would share links: {wanted} wanted, {free} free but not on links of its own"
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}
