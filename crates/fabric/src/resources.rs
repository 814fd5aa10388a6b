//! Counted resources: the amounts that nodes have and jobs take.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::error::shown;

/// The index of cores in a vector of counts.
pub const CORES: usize = 0;
/// The index of memory, in bytes, in a vector of counts.
pub const MEMORY: usize = 1;

/// The longest name of a resource, in characters.
const LONGEST: usize = 64;
/// The most resources of a machine or a workload; every node has a counter for each.
const MOST: usize = 64;

/// The names of the resources of a machine or a workload. Cores and memory come first, the others in the order in which
/// they were added. Vectors of counts are in this order.
///
/// A name may have a type: `gpu:h100` is a `gpu`. The count of `gpu` is that of all types together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    names: Vec<String>,
    /// For every resource with a type, the index of the resource without the type.
    untyped: Vec<Option<usize>>,
}

impl Default for Resources {
    fn default() -> Self {
        Resources { names: vec!["cores".to_owned(), "memory".to_owned()], untyped: vec![None; 2] }
    }
}

impl Resources {
    /// All names, by index.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The index of a name; `None` if it is not counted here.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Returns the index of a name. Adds a new name, and before it the name without its type.
    ///
    /// # Errors
    /// A name that [`check_resource`] refuses, or too many names.
    pub fn add(&mut self, name: &str) -> Result<usize, String> {
        if let Some(known) = self.index(name) {
            return Ok(known);
        }
        check_resource(name)?;
        let untyped = name.split_once(':').map(|(untyped, _)| self.add(untyped)).transpose()?;
        if self.names.len() >= MOST {
            return Err(format!("resource {name} is one too many: at most {MOST} are counted"));
        }
        self.names.push(name.to_owned());
        self.untyped.push(untyped);
        Ok(self.names.len() - 1)
    }

    /// Raises the count of every resource without a type to at least the sum of its types.
    pub fn include_types(&self, counts: &mut [u64]) {
        let mut typed = vec![0_u64; counts.len()];
        for (&count, untyped) in counts.iter().zip(&self.untyped) {
            if let Some(untyped) = *untyped {
                typed[untyped] = typed[untyped].saturating_add(count);
            }
        }
        for (count, typed) in counts.iter_mut().zip(typed) {
            *count = (*count).max(typed);
        }
    }
}

/// Checks the name of a resource: up to 64 letters, digits, dots, dashes, underscores and slashes, optionally followed
/// by a colon and a type of the same characters.
///
/// # Errors
/// A sentence that shows the name.
pub fn check_resource(name: &str) -> Result<(), String> {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
    };
    let (untyped, kind) = name.split_once(':').unwrap_or((name, "any"));
    if is_word(untyped) && is_word(kind) && name.len() <= LONGEST {
        return Ok(());
    }
    Err(format!(
        "{} is no name of a resource: up to {LONGEST} letters, digits, dots, dashes, underscores and slashes, with a type \
         after a colon if it has one",
        shown(name)
    ))
}

/// The amount of each resource of a node in addition to cores and memory, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ResourceCounts(BTreeMap<String, u32>);

impl ResourceCounts {
    /// The names and counts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(name, &count)| (name.as_str(), count))
    }

    /// Whether there are no counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that one node can have these counts.
    ///
    /// # Errors
    /// A name that [`check_resource`] refuses, cores or memory, or a resource with fewer than the sum of its types.
    pub fn check(&self) -> Result<(), String> {
        for (name, count) in self.iter() {
            check_counted(name)?;
            let prefix = format!("{name}:");
            let of_type = self.iter().filter(|(other, _)| other.starts_with(&prefix));
            let typed: u64 = of_type.map(|(_, count)| u64::from(count)).sum();
            if typed > u64::from(count) && !name.contains(':') {
                return Err(format!(
                    "resource {name}: {count} are fewer than the {typed} of its types together"
                ));
            }
        }
        Ok(())
    }
}

/// Refuses cores and memory, which have keys of their own.
fn check_counted(name: &str) -> Result<(), String> {
    check_resource(name)?;
    match name.split(':').next() {
        Some("cores") => Err(format!(
            "resource {name}: cores are counted by sockets and cores-per-socket of the node"
        )),
        Some("memory") => {
            Err(format!("resource {name}: memory is counted by the key memory of the node"))
        }
        _ => Ok(()),
    }
}

impl<const N: usize> From<[(&str, u32); N]> for ResourceCounts {
    fn from(counts: [(&str, u32); N]) -> Self {
        counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }
}

impl FromIterator<(String, u32)> for ResourceCounts {
    fn from_iter<I: IntoIterator<Item = (String, u32)>>(counts: I) -> Self {
        // Zero counts are dropped.
        ResourceCounts(counts.into_iter().filter(|&(_, count)| count > 0).collect())
    }
}

impl<'de> Deserialize<'de> for ResourceCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ResourceCountsVisitor;
        impl<'de> Visitor<'de> for ResourceCountsVisitor {
            type Value = ResourceCounts;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a table of resources and their counts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceCounts, A::Error> {
                let mut counts = ResourceCounts::default();
                while let Some(Name(name)) = map.next_key()? {
                    let count = map.next_value_seed(CountOf(&name))?;
                    counts.0.insert(name, count);
                }
                counts.check().map_err(A::Error::custom)?;
                Ok(counts.0.into_iter().collect())
            }
        }
        deserializer.deserialize_map(ResourceCountsVisitor)
    }
}

/// The name of a resource, checked while it is parsed.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        check_counted(&name).map_err(D::Error::custom)?;
        Ok(Name(name))
    }
}

/// The count of the resource with this name.
struct CountOf<'a>(&'a str);

impl CountOf<'_> {
    fn checked<N: TryInto<u32> + fmt::Display + Copy, E: Error>(&self, count: N) -> Result<u32, E> {
        count.try_into().map_err(|_| {
            E::custom(format!("resource {}: {count} is not a count from 0 to {}", self.0, u32::MAX))
        })
    }
}

impl<'de> DeserializeSeed<'de> for CountOf<'_> {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u32, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for CountOf<'_> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "the count of resource {}, a number from 0 to {}", self.0, u32::MAX)
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<u32, E> {
        self.checked(count)
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<u32, E> {
        self.checked(count)
    }

    fn visit_i128<E: Error>(self, count: i128) -> Result<u32, E> {
        self.checked(count)
    }

    fn visit_u128<E: Error>(self, count: u128) -> Result<u32, E> {
        self.checked(count)
    }
}
