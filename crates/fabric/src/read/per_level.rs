//! A value of machine.toml that is one number or a list of numbers.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// One number for all levels, or one for each level.
pub(super) enum PerLevel {
    All(f64),
    Each(Vec<f64>),
}

impl PerLevel {
    /// The number of each of `count` levels or dimensions, or all that are listed.
    pub fn of_each(self, count: usize) -> Vec<f64> {
        match self {
            PerLevel::All(one) => vec![one; count],
            PerLevel::Each(list) => list,
        }
    }
}

impl<'de> Deserialize<'de> for PerLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrList;
        impl<'de> Visitor<'de> for NumberOrList {
            type Value = PerLevel;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, or a list of one number a level")
            }

            fn visit_i64<E>(self, value: i64) -> Result<PerLevel, E> {
                Ok(PerLevel::All(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<PerLevel, E> {
                Ok(PerLevel::All(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<PerLevel, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(PerLevel::Each)
            }
        }
        deserializer.deserialize_any(NumberOrList)
    }
}
