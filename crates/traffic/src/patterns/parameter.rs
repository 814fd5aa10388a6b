//! Parameters of patterns, and how their values are parsed.

use topolane_fabric::{InputError, shown};

/// The values that a parameter may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AllowedValues {
    /// Any number in a range, including both ends.
    Number(f64, f64),
    /// A whole number in a range, including both ends.
    Whole(u32, u32),
    /// One of these words; the value is its index.
    Word(&'static [&'static str]),
}

/// One parameter of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: &'static str,
    /// The meaning of the parameter.
    pub summary: &'static str,
    /// The unit of the value; empty if it has none.
    pub unit: &'static str,
    /// The values that are allowed.
    pub domain: AllowedValues,
    /// The default value, as text.
    pub default: &'static str,
}

/// The most bytes of a message, so that sums of many are exact whole numbers.
const MOST_BYTES: f64 = (1u64 << 40) as f64;

/// Returns a parameter for a number of bytes.
pub(super) const fn bytes(summary: &'static str, default: &'static str) -> Parameter {
    let domain = AllowedValues::Number(0.0, MOST_BYTES);
    Parameter { name: "bytes", summary, unit: "bytes", domain, default }
}

/// Returns a parameter with a whole number.
pub(super) const fn whole(
    name: &'static str,
    summary: &'static str,
    domain: AllowedValues,
    default: &'static str,
) -> Parameter {
    Parameter { name, summary, unit: "", domain, default }
}

impl Parameter {
    /// Parses a value.
    pub(super) fn read(&self, text: &str) -> Result<f64, InputError> {
        let value = match self.domain {
            AllowedValues::Number(least, most) => {
                text.parse().ok().filter(|value: &f64| (least..=most).contains(value))
            }
            AllowedValues::Whole(least, most) => {
                let whole: Option<u32> = text.parse().ok();
                whole.filter(|value| (least..=most).contains(value)).map(f64::from)
            }
            AllowedValues::Word(words) => {
                words.iter().position(|word| *word == text).map(|place| place as f64)
            }
        };
        value.ok_or_else(|| {
            InputError::whole(format!("{} {} is not {}", self.name, shown(text), self.domain))
        })
    }

    /// Formats a value.
    pub(super) fn write(&self, value: f64) -> String {
        match self.domain {
            AllowedValues::Word(words) => words.get(value as usize).map(ToString::to_string),
            _ => None,
        }
        .unwrap_or_else(|| value.to_string())
    }
}

impl std::fmt::Display for AllowedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AllowedValues::Number(least, most) => write!(f, "a number from {least} to {most}"),
            AllowedValues::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            AllowedValues::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}
