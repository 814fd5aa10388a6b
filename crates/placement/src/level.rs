//! The level of the machine within which a request must or should lie, for systems where each job states it.

use std::fmt;

use topolane_fabric::Fabric;

/// A kind of group of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Groups of this level of the tree: 0 for nodes, 1 for leaves, 2 for pods.
    Tree(u8),
    /// Domains ([`Fabric::domain`](topolane_fabric::Fabric::domain)), such as NVLink domains.
    Domain,
}

/// The group in which a request is to lie, for policies that read it from each request: Kueue's `required`, `preferred`
/// and `unconstrained`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Within {
    /// The request does not say; the policy uses its default.
    #[default]
    Unsaid,
    /// The request may lie in any groups.
    Anywhere,
    /// In one group of the level if possible, else of the lowest level above it where one has enough free slots.
    Preferred(Level),
    /// In one group of the level, or the request is refused.
    Required(Level),
}

/// The error for a text that does not say where a request is to lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotWithin(String);

impl fmt::Display for NotWithin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is neither unconstrained nor preferred:LEVEL nor required:LEVEL, where LEVEL is node, leaf, pod, domain \
             or the number of a level",
            self.0
        )
    }
}

impl std::error::Error for NotWithin {}

/// The error for a level that the machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLevel(String);

impl fmt::Display for NoLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoLevel {}

impl Level {
    /// Parses `node`, `leaf`, `pod`, `domain` or the number of a level of the tree; `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "node" => Level::Tree(0),
            "leaf" => Level::Tree(1),
            "pod" => Level::Tree(2),
            "domain" => Level::Domain,
            number => Level::Tree(number.parse().ok()?),
        })
    }

    /// Checks that a machine has the level.
    ///
    /// # Errors
    ///
    /// A sentence that names the machine and the level.
    pub fn check(self, fabric: &Fabric) -> Result<(), NoLevel> {
        let (name, top) = (fabric.name(), fabric.depth());
        match self {
            Level::Tree(level) if usize::from(level) > top => Err(NoLevel(format!(
                "machine {name} has levels 0 (node), 1 (leaf) to {top}, and no level {level}"
            ))),
            Level::Domain if fabric.domains() == 0 => {
                Err(NoLevel(format!("machine {name} has no domains")))
            }
            _ => Ok(()),
        }
    }
}

impl Within {
    /// Checks that a machine has the named level.
    ///
    /// # Errors
    ///
    /// A sentence that names the machine and the level.
    pub fn check(self, fabric: &Fabric) -> Result<(), NoLevel> {
        match self {
            Within::Preferred(level) | Within::Required(level) => level.check(fabric),
            Within::Unsaid | Within::Anywhere => Ok(()),
        }
    }
}

impl std::str::FromStr for Within {
    type Err = NotWithin;

    /// Parses `unconstrained`, `preferred:LEVEL` or `required:LEVEL`. LEVEL is `node`, `leaf`, `pod`, `domain` or a
    /// number.
    fn from_str(text: &str) -> Result<Self, NotWithin> {
        let within = match text.split_once(':') {
            None if text == "unconstrained" => Some(Within::Anywhere),
            Some(("preferred", level)) => Level::parse(level).map(Within::Preferred),
            Some(("required", level)) => Level::parse(level).map(Within::Required),
            _ => None,
        };
        within.ok_or_else(|| NotWithin(text.chars().take(60).collect()))
    }
}
