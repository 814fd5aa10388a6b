//! The parameters of patterns, and how their values are read.

use topolane_fabric::{InputError, shown};

/// What the value of a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Domain {
    /// Any number in a range, both ends in it.
    Number(f64, f64),
    /// A whole number in a range, both ends in it.
    Whole(u32, u32),
    /// One of these words; its value is its place among them.
    Word(&'static [&'static str]),
}

/// One parameter of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub summary: &'static str,
    /// The unit of its value; empty where it has none.
    pub unit: &'static str,
    /// What its value may be.
    pub domain: Domain,
    /// Its value where none is given, as it would be written.
    pub default: &'static str,
}

/// The most bytes a message may have: sums of many stay exact whole numbers.
const MOST_BYTES: f64 = (1u64 << 40) as f64;

/// A number of bytes.
pub(super) const fn bytes(summary: &'static str, default: &'static str) -> Parameter {
    let domain = Domain::Number(0.0, MOST_BYTES);
    Parameter { name: "bytes", summary, unit: "bytes", domain, default }
}

/// A whole number of something.
pub(super) const fn whole(
    name: &'static str,
    summary: &'static str,
    domain: Domain,
    default: &'static str,
) -> Parameter {
    Parameter { name, summary, unit: "", domain, default }
}

impl Parameter {
    /// The value that `text` gives.
    pub(super) fn read(&self, text: &str) -> Result<f64, InputError> {
        let value = match self.domain {
            Domain::Number(least, most) => {
                text.parse().ok().filter(|value: &f64| (least..=most).contains(value))
            }
            Domain::Whole(least, most) => {
                let whole: Option<u32> = text.parse().ok();
                whole.filter(|value| (least..=most).contains(value)).map(f64::from)
            }
            Domain::Word(words) => {
                words.iter().position(|word| *word == text).map(|place| place as f64)
            }
        };
        value.ok_or_else(|| {
            InputError::whole(format!("{} {} is not {}", self.name, shown(text), self.domain))
        })
    }

    /// A value as it would be written.
    pub(super) fn write(&self, value: f64) -> String {
        match self.domain {
            Domain::Word(words) => words.get(value as usize).map(ToString::to_string),
            _ => None,
        }
        .unwrap_or_else(|| value.to_string())
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Domain::Number(least, most) => write!(f, "a number from {least} to {most}"),
            Domain::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Domain::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}
