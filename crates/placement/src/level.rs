//! Which group of the machine a request is to lie in, as systems ask that let every job say so.

use std::fmt;

use topolane_fabric::Fabric;

/// A kind of group of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Groups of this level of the tree: 0 for nodes, 1 for leaves, 2 for pods.
    Tree(u8),
    /// Domains ([`Fabric::domain`](topolane_fabric::Fabric::domain)).
    Domain,
}

/// In which group a request is to lie, for rules that ask each request: Kueue's `required`, `preferred` and `unconstrained`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Within {
    /// The request does not say; the rule has a default.
    #[default]
    Unsaid,
    /// In any groups.
    Anywhere,
    /// In one group of the level or, where none has room, of the lowest level above that has.
    Preferred(Level),
    /// In one group of the level, or not at all.
    Required(Level),
}

/// What a request is to lie in, in words that cannot be read.
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

/// A level that a machine does not have, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLevel(String);

impl fmt::Display for NoLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoLevel {}

impl Level {
    /// Reads `node`, `leaf`, `pod`, `domain` or the number of a level of the tree; `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "node" => Level::Tree(0),
            "leaf" => Level::Tree(1),
            "pod" => Level::Tree(2),
            "domain" => Level::Domain,
            number => Level::Tree(number.parse().ok()?),
        })
    }

    /// That a machine has the level.
    ///
    /// # Errors
    ///
    /// A sentence that names the machine.
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
    /// That a machine has the level that is named.
    ///
    /// # Errors
    ///
    /// A sentence that names the machine.
    pub fn check(self, fabric: &Fabric) -> Result<(), NoLevel> {
        match self {
            Within::Preferred(level) | Within::Required(level) => level.check(fabric),
            Within::Unsaid | Within::Anywhere => Ok(()),
        }
    }
}

impl std::str::FromStr for Within {
    type Err = NotWithin;

    /// Reads `unconstrained`, `preferred:LEVEL` or `required:LEVEL`; LEVEL is `node`, `leaf`, `pod`, `domain` or a number.
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
